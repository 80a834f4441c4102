#ifndef RUBATO_CLI_AUDIT_PLAN_HISTORY_H_
#define RUBATO_CLI_AUDIT_PLAN_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/audit/audit_report.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// A plan as one log tells of it, with its members as amended so far.
struct AuditedPlan {
  v1::Plan plan;
  // members[i] says whether task number i (PlanHistory::NumberOf) still is one.
  std::vector<bool> members;
  int64_t member_count = 0;
  // The first step of the plan after it.
  int64_t end_step = std::numeric_limits<int64_t>::max();
  // Where its pushes are counted.
  StalenessReport* staleness = nullptr;

  bool HasMember(size_t number) const { return number < members.size() && members[number]; }
  bool waits_for_all() const { return plan.mode() == v1::SYNC && plan.quorum() == 0; }
};

// The plans of one log: the one that holds and the one before, to which pushes may still belong. Pure.
class PlanHistory {
 public:
  // `where` names the log in counterexamples. `report` outlives the history.
  PlanHistory(std::string where, AuditReport* report) : where_(std::move(where)), report_(report) {}

  enum class Change { kNone, kAmended, kNew };

  // A plan record. `highest_step` is the highest step among the log's pushes so far, -1 for none. Breaks I5 if the
  // plan does not follow from the one that holds.
  Change Enter(const v1::Plan& plan, int64_t highest_step);

  // Null when it is neither the current nor the previous plan's.
  const AuditedPlan* Find(uint64_t generation) const;
  const std::optional<AuditedPlan>& current() const { return current_; }
  // Without the members that have been lost since.
  const std::optional<AuditedPlan>& previous() const { return previous_; }

  // A small number for a worker's incarnation, the same at every call.
  size_t NumberOf(uint32_t worker, uint64_t incarnation);
  // The worker index of a number.
  uint32_t WorkerOf(size_t number) const { return workers_[number]; }

 private:
  std::vector<bool> MembersOf(const v1::Plan& plan);
  void Amend(const v1::Plan& plan);
  void CheckSuccessor(const v1::Plan& plan, int64_t highest_step);

  const std::string where_;
  AuditReport* const report_;
  std::optional<AuditedPlan> current_;
  std::optional<AuditedPlan> previous_;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, size_t> numbers_;
  std::vector<uint32_t> workers_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_AUDIT_PLAN_HISTORY_H_
