#ifndef RUBATO_COORDINATOR_RULES_RECOVERY_H_
#define RUBATO_COORDINATOR_RULES_RECOVERY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/rules/finishing_phase.h"
#include "coordinator/rules/job_end.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"
#include "coordinator/rules/plan_keeper.h"
#include "coordinator/rules/rollback.h"
#include "coordinator/rules/starting_phase.h"
#include "coordinator/rules/training_phase.h"
#include "proto/journal.pb.h"

namespace rubato::coordinator {

// Makes a new coordinator the one whose journal it reads. Pure; used once.
class Recovery {
 public:
  // All outlive it.
  struct Parts {
    JobState* job;
    Outbox* out;
    PlanKeeper* plans;
    Rollback* rollback;
    StartingPhase* starting;
    TrainingPhase* training;
    FinishingPhase* finishing;
    JobEnd* end;
  };
  explicit Recovery(const Parts& parts) : parts_(parts), job_(parts.job), out_(parts.out), plans_(parts.plans) {}

  // As CoordinatorCore::Recover.
  absl::Status Run(const std::vector<v1::JournalRecord>& records, absl::Time now);

 private:
  absl::Status Replay(const v1::JournalRecord& record, absl::Time now);
  absl::Status ReplayHeader(const v1::JournalHeader& header);
  void ReplayTerm(const v1::JournalTerm& term);
  void ReplayTask(const v1::JournalTask& task, absl::Time now);
  void ReplayPlan(const v1::JournalPlan& plan);
  void ReplayReturned(const v1::JournalReturnedShards& returned);
  void ReplayPhase(const v1::JournalPhase& phase);
  // Records that were not synced may be missing: which shards of data were given out last, and which were finished.
  bool MayHaveForgotten() const;
  // Goes on with a stop that was asked for.
  void GoBack(const std::string& reason, absl::Time now);
  // The plan holds again, and an announcement without a decision is made again.
  void ResumePlan(absl::Time now);

  const Parts parts_;
  JobState* const job_;
  Outbox* const out_;
  PlanKeeper* const plans_;

  bool has_header_ = false;
  // Of the machine that wrote the last records.
  std::string boot_id_;
  v1::Plan plan_;
  size_t members_decided_ = 0;
  // The announcement without a decision.
  std::optional<std::pair<uint64_t, PlanChange>> announced_;
  std::string policy_memory_;
  uint32_t requested_quorum_ = 0;
  // Somebody has asked for the end.
  std::optional<std::string> stop_reason_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_RECOVERY_H_
