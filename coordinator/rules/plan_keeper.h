#ifndef RUBATO_COORDINATOR_RULES_PLAN_KEEPER_H_
#define RUBATO_COORDINATOR_RULES_PLAN_KEEPER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"
#include "coordinator/rules/plan_watch.h"

namespace rubato::coordinator {

// What follows from the plan maker's actions: journal, messages to servers and workers, answers to operators, and the
// record of what each plan cost. Pure.
//
//   plans.Apply(job.plan_maker->AddWorker(task, now), now);
class PlanKeeper {
 public:
  // Both outlive it.
  PlanKeeper(JobState* job, Outbox* out) : job_(job), out_(out) {}

  void Apply(const PlanMaker::Actions& actions, absl::Time now);
  // Writes the plan line of a plan whose members have begun, or have had the time to.
  void Watch(absl::Time now);
  // The same as far as they have come.
  void Flush(absl::Time now);

  // Nobody will answer requests for a switch any more; `why`: "the job has ended".
  void AbortSwitches(const std::string& why);

  // After a restart, before the first Apply: what the mode policy remembers, and the plan whose line has been written.
  void Restore(const std::string& policy_memory, uint64_t recorded_generation);
  const std::string& policy_memory() const { return policy_memory_; }

 private:
  void JournalPlan(const PlanAction& action);
  void OnCommitted(const PlanAction& action, absl::Time now);
  void OnDropped(const PlanChange& change);
  void WriteLine(const std::optional<PlanWatch::Report>& report, absl::Time now);
  void TellWorkers();

  JobState* const job_;
  Outbox* const out_;
  PlanWatch watch_;
  // Plans up to this one have their line in the run record.
  uint64_t recorded_generation_ = 0;
  // With the newest change of the policy's that was announced or dropped. Of a later one that waits, the journal knows
  // nothing: after a restart the policy asks for it again.
  std::string policy_memory_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_PLAN_KEEPER_H_
