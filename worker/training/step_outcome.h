#ifndef RUBATO_WORKER_TRAINING_STEP_OUTCOME_H_
#define RUBATO_WORKER_TRAINING_STEP_OUTCOME_H_

#include "absl/status/statusor.h"

namespace rubato::worker {

// What came of a step, or of a part of it. The step ends with what is not complete.
enum class StepOutcome {
  kComplete,
  // The plan has changed, and another step comes next. Nothing of this one was pushed.
  kMoved,
  // Something in it is not finite, so empty contributions have been pushed.
  kSkipped,
};

// RUBATO_RETURN_UNLESS_COMPLETE(expression);  returns an absl::StatusOr<StepOutcome> that is an error or not kComplete.
#define RUBATO_RETURN_UNLESS_COMPLETE(expression)                                                    \
  do {                                                                                               \
    absl::StatusOr<StepOutcome> rubato_outcome_ = (expression);                                      \
    if (!rubato_outcome_.ok() || *rubato_outcome_ != StepOutcome::kComplete) return rubato_outcome_; \
  } while (false)

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_STEP_OUTCOME_H_
