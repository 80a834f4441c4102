#ifndef RUBATO_CLI_CAPACITY_STEP_SOURCE_H_
#define RUBATO_CLI_CAPACITY_STEP_SOURCE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/capacity/costs.h"
#include "common/straggler/straggler.h"

namespace rubato::capacity {

// How long a worker's steps take: each is one of the recorded ones, drawn for the worker and the step, and slowed down
// as a straggler's model says, by the same draws as the real worker's. What it returns depends on seed, worker and step
// alone. Not thread-safe.
class StepSource {
 public:
  struct Options {
    // At least one. Outlives it.
    const std::vector<RecordedStep>* steps = nullptr;
    uint64_t seed = 0;
    uint32_t worker = 0;
    // Absent: steps pause as long as the recorded ones, and are not slowed down otherwise.
    std::optional<Straggler> straggler = {};
  };
  struct Step {
    const RecordedStep* work = nullptr;
    double pause = 0;   // In seconds.
    double factor = 1;  // At least 1: its work takes so many times its processor time; the rest is slept.
  };

  explicit StepSource(Options options) : options_(std::move(options)) {}

  // step >= 0.
  Step At(int64_t step);

 private:
  Options options_;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_STEP_SOURCE_H_
