#ifndef RUBATO_COMMON_STRAGGLER_STRAGGLER_H_
#define RUBATO_COMMON_STRAGGLER_STRAGGLER_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "common/straggler/slow_episodes.h"
#include "common/straggler/straggler_model.h"

namespace rubato {

// By how much a step is slowed down: it takes (its computing + added) * factor.
struct StepDelay {
  double factor = 1;
  absl::Duration added;

  // What is slept besides the computing.
  absl::Duration pause() const { return added * factor; }
};

// One worker that follows a model. What a step is slowed down by depends on seed, worker and step alone, each kind of
// term drawing from a stream of its own: the same in every mode, and again after a restart or a rollback. Not
// thread-safe.
//
//   Straggler straggler(model, {.seed = config.seed(), .worker = 1, .workers = 4});
//   const StepDelay delay = straggler.At(step);
class Straggler {
 public:
  struct Place {
    uint64_t seed = 0;
    uint32_t worker = 0;
    // Of the job.
    uint32_t workers = 1;
  };

  // A trace is read already (straggler_trace.h).
  Straggler(const StragglerModel& model, const Place& place);

  // step >= 0.
  StepDelay At(int64_t step);

 private:
  // Of all steps alike.
  double WorkerFactor() const;
  double StepFactor(int64_t step);
  absl::Duration Added(int64_t step) const;
  double TraceSeconds(int64_t step) const;

  const StragglerModel model_;
  const Place place_;
  const double worker_factor_;
  std::optional<SlowEpisodes> episodes_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STRAGGLER_STRAGGLER_H_
