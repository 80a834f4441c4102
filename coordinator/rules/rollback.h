#ifndef RUBATO_COORDINATOR_RULES_ROLLBACK_H_
#define RUBATO_COORDINATOR_RULES_ROLLBACK_H_

#include <string>

#include "absl/time/time.h"
#include "coordinator/rules/cut_keeper.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"
#include "coordinator/rules/plan_keeper.h"

namespace rubato::coordinator {

// Takes the job back to its last checkpoint, or to its beginning when there is none, in a new term: journals where it
// goes on from, has every task start again, and asks the shell for a new core, which reads that from the journal.
// Nothing else may follow from this core. Pure.
class Rollback {
 public:
  // All outlive it.
  Rollback(JobState* job, Outbox* out, CutKeeper* cuts, PlanKeeper* plans)
      : job_(job), out_(out), cuts_(cuts), plans_(plans) {}

  // `reason` says what was lost. Does nothing the second time.
  void Begin(const std::string& reason, absl::Time now);
  // The same from the checkpoint before the one that the job is going on from, which cannot be read. False, and nothing
  // is done: there is none.
  bool BeginFromEarlier(const std::string& reason, absl::Time now);

 private:
  void GoBack(const std::string& reason, absl::Time now);

  JobState* const job_;
  Outbox* const out_;
  CutKeeper* const cuts_;
  PlanKeeper* const plans_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_ROLLBACK_H_
