#ifndef RUBATO_SERVER_RULES_PLAN_WINDOW_H_
#define RUBATO_SERVER_RULES_PLAN_WINDOW_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "proto/parameter_server.pb.h"
#include "server/rules/member_list.h"

namespace rubato::server {

// The members of a plan stand in ascending order of their indices, and no two have the same.
bool IsMember(const v1::Plan& plan, const v1::TaskId& task);
// The same for a worker.
bool IsMember(const v1::Plan& plan, uint32_t index, uint64_t incarnation);

// The plans that steps may belong to: the one that holds and, while its steps drain, the one before it. Pure; not
// thread-safe; owned by a Partition.
class PlanWindow {
 public:
  // What a committed plan was.
  enum class Change { kNone, kAmended, kEntered };

  // Holds starts for the plan change `generation`. One that is in force, or under an announced one, changes nothing.
  void Announce(uint64_t generation);
  // Whether starts are no longer held.
  bool Abort(uint64_t generation);
  // A new plan, or an amendment of the one in force. Older ones change nothing. Whoever is lost to the current plan is
  // lost to the one before it, too.
  Change Commit(const v1::Plan& plan);

  // Generation 0 until the first plan.
  const v1::Plan& current() const { return current_; }
  const std::optional<v1::Plan>& previous() const { return previous_; }
  // Starts are held for this generation; 0 when no change is announced.
  uint64_t announced() const { return announced_; }

  bool left_sync() const { return previous_.has_value() && previous_->mode() == v1::SYNC; }
  // Of the current plan; never null.
  const MemberList::Ptr& members() const { return members_; }
  bool IsMember(const v1::TaskId& task) const { return members_->Find(task) < members_->size(); }
  // The plan that a push or start of `step` under `generation` belongs to; null when it is too old to be known.
  const v1::Plan* PlanOf(uint64_t generation, int64_t step) const;

  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  v1::Plan current_;
  MemberList::Ptr members_ = std::make_shared<const MemberList>();
  std::optional<v1::Plan> previous_;
  uint64_t announced_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_PLAN_WINDOW_H_
