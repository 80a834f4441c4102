#ifndef RUBATO_COORDINATOR_RULES_MODE_POLICY_H_
#define RUBATO_COORDINATOR_RULES_MODE_POLICY_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coordinator/rules/job_snapshot.h"
#include "coordinator/rules/plan_maker.h"

namespace rubato::coordinator {

// Decides when a training job changes its mode, and to which. Pure and single-threaded: what it returns depends on the
// job's config, on the snapshots that it was given, and on what it remembers. One file of policies/ per policy.
//
//   std::optional<PlanChange> change = policy->Decide(snapshot);
//   if (change) Request(*change, policy->Memory());
//
// The coordinator journals the memory with the plan that comes of a change, or with its being dropped, and gives it
// back to the same policy after a restart. A change whose memory was not journalled yet is asked for again.
class ModePolicy {
 public:
  virtual ~ModePolicy() = default;

  // Called several times a second while the job trains. The change that it shall make now, with mode, staleness bound,
  // quorum, learning-rate scale and the reason for the run record; nothing when it shall go on as it does. A change
  // that has been returned is in progress, or an operator's later request has taken its place: it is not asked for
  // again.
  virtual std::optional<PlanChange> Decide(const JobSnapshot& job) = 0;

  // What must outlive the coordinator's process, as bytes that nobody else reads. Restore: InvalidArgument when Memory
  // of a policy with this config has not written them; empty is the memory of a new policy.
  virtual std::string Memory() const = 0;
  virtual absl::Status Restore(absl::string_view memory) = 0;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_MODE_POLICY_H_
