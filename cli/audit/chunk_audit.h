#ifndef RUBATO_CLI_AUDIT_CHUNK_AUDIT_H_
#define RUBATO_CLI_AUDIT_CHUNK_AUDIT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/audit/audit_report.h"
#include "cli/audit/member_clocks.h"
#include "cli/audit/plan_history.h"
#include "proto/update_log.pb.h"

namespace rubato {

// Replays the pushes to one chunk. Its memory is bounded by the tasks and by how many steps apart they are, not by the
// length of the log. Pure; not thread-safe.
//
// What it knows of time: the log has pushes in order of application, each with the version that its weights were taken
// from. So a step began after that version was made, and the slowest clock at that version is the least that the gate
// can have seen.
class ChunkAudit {
 public:
  // `where` names log and chunk in counterexamples. The chunk's first version is `version`. `plans` and `report`
  // outlive the object.
  ChunkAudit(std::string where, const PlanHistory* plans, int64_t version, AuditReport* report);

  int64_t first_version() const { return first_version_; }
  // After the pushes so far.
  int64_t version() const { return version_; }

  void OnPush(const v1::UpdateRecord& push, size_t member);

  // To be called before the plan history changes, and at the end: the SYNC update whose contributions came last is
  // complete now, or broken.
  void CloseUpdate();
  // The log ends in the middle of its last SYNC update.
  void DropUpdate() { update_.reset(); }

  // After the plan history has changed.
  void OnNewPlan();
  void OnAmendment();

 private:
  // What the pushes of one task say.
  struct Member {
    uint64_t generation = 0;  // Of its last push; 0 before the first.
    int64_t last_step = -1;
    // Steps that it has certainly done: from here to last_step, and those of the plan before.
    int64_t run_start = 0;
    int64_t earlier_start = 0;
    int64_t earlier_end = -1;
    // The version that its last push was applied as; before, the chunk's first one.
    int64_t applied_version;
  };

  // The clocks under one plan.
  struct Era {
    uint64_t generation;
    MemberClocks clocks;
    // The push that needed the highest clock so far.
    std::optional<v1::UpdateRecord> deepest;
    int64_t deepest_need = 0;
  };

  // A SYNC update, of which one record has come at least.
  struct Update {
    uint64_t generation;
    int64_t step;
    int64_t version;
    std::vector<size_t> contributors;
  };

  Era* EraOf(uint64_t generation);
  Era NewEra(const AuditedPlan& plan) const;
  std::string Who(const v1::UpdateRecord& push) const;

  void CheckMember(const v1::UpdateRecord& push, const AuditedPlan& plan, size_t member);
  // Returns whether the push is a step forward.
  bool CheckOrder(const v1::UpdateRecord& push, const AuditedPlan& plan, const Member& member);
  void CheckLeftSync(const v1::UpdateRecord& push);
  void CheckStaleness(const v1::UpdateRecord& push, const AuditedPlan& plan, const Member& member, Era& era);
  void CheckVersion(const v1::UpdateRecord& push);
  // Adds a contribution to the open update, or opens one. `forward`: it is the member's first for this step.
  void Collect(const v1::UpdateRecord& push, const AuditedPlan& plan, size_t member, bool forward);
  void OpenUpdate(const v1::UpdateRecord& push, const AuditedPlan& plan);
  // With a quorum, members may be moved past a step before their push has come. When the plan is left then, or a
  // contributor is lost, the step is completed by fewer than the quorum, or is left out if there is nobody.
  bool MayBeShort(const AuditedPlan& plan) const;
  // After the last update, if every step has one.
  int64_t NextSyncStep(const AuditedPlan& plan) const;
  void Drop(const v1::UpdateRecord& push, const AuditedPlan& plan);
  bool Continues(const v1::UpdateRecord& push) const;
  void NoteStep(const v1::UpdateRecord& push, Member& member);
  void NoteDrained(const v1::UpdateRecord& push, size_t member);
  void ForgetPast(Era& era);

  const std::string where_;
  const PlanHistory* const plans_;
  AuditReport* const report_;
  const int64_t first_version_;
  int64_t version_;
  std::vector<Member> members_;
  std::optional<Era> current_;
  std::optional<Era> previous_;
  std::optional<Update> update_;
  // The last step that SYNC updated, and its plan.
  uint64_t sync_generation_ = 0;
  int64_t sync_step_ = -1;
  int64_t sync_version_ = 0;
  // The newest plan that a push belonged to.
  uint64_t newest_generation_ = 0;
  size_t forget_at_ = 64;
};

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_CHUNK_AUDIT_H_
