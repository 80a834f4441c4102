#ifndef RUBATO_COORDINATOR_RULES_EVALUATION_KEEPER_H_
#define RUBATO_COORDINATOR_RULES_EVALUATION_KEEPER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"

namespace rubato::coordinator {

// Asks the evaluator when the schedule says so, and writes down what it answers. Pure.
class EvaluationKeeper {
 public:
  // Both outlive it.
  EvaluationKeeper(JobState* job, Outbox* out) : job_(job), out_(out) {}

  // While the job trains. `at_step` as in v1::Evaluate.
  void AskWhenDue(int64_t at_step);
  void AskForFinal();
  // An evaluator that has registered is told what it may have missed.
  void Remind(const v1::TaskId& evaluator);
  void OnResult(const v1::EvaluationResult& result, absl::Time now);

 private:
  void Ask(const v1::Evaluate& request, bool final);

  JobState* const job_;
  Outbox* const out_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_EVALUATION_KEEPER_H_
