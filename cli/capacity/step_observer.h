#ifndef RUBATO_CLI_CAPACITY_STEP_OBSERVER_H_
#define RUBATO_CLI_CAPACITY_STEP_OBSERVER_H_

#include <cstdint>

#include "cli/capacity/exchange.h"

namespace rubato::capacity {

// Told of a step that a worker has ended.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  // `staleness`: of what it pushed for the step before, the largest of the chunks; -1: nothing was applied.
  virtual void OnStep(uint32_t worker, const StepParts& parts, int64_t staleness) = 0;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_STEP_OBSERVER_H_
