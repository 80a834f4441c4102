#ifndef RUBATO_SERVER_RULES_STEP_GATE_H_
#define RUBATO_SERVER_RULES_STEP_GATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "server/rules/member_list.h"

namespace rubato::server {

// The clocks of a plan's members on one chunk, and who of them is behind. Takes as long however many members there are,
// but for what goes through all of them: a plan, Behind, and the lowest clock's move to another step. Pure; not
// thread-safe.
class StepGate {
 public:
  struct Member {
    // Whether the step begun last has a push that is still to come.
    bool working = false;
    // Working on a step of the plan before; its clock is first_step - 1 until that push comes or it begins first_step.
    bool draining = false;
    // The highest step whose weights were handed out here; -1 for none.
    int64_t begun = -1;
  };

  // Takes the members of a plan that begins with `first_step`. A member that was there before keeps its clock when
  // `keep_clocks` (leaving SYNC, where everybody finishes the same last step). Otherwise its clock becomes first_step,
  // or first_step - 1 and draining when it is working on a step. New members start at first_step.
  void EnterPlan(MemberList::Ptr members, int64_t first_step, bool keep_clocks);

  // Keeps only these members, all of whom are there, with their clocks.
  void Amend(MemberList::Ptr members);

  // The member with this index and incarnation; null if there is none.
  Member* Find(const v1::TaskId& task);
  const Member* Find(const v1::TaskId& task) const;

  void Prefetch(uint32_t worker) const {
    if (worker >= members_.size()) return;
    __builtin_prefetch(&members_[worker], 1);
    __builtin_prefetch(&clocks_[worker], 1);
  }

  // By slot.
  const MemberList& list() const { return *list_; }
  const std::vector<Member>& members() const { return members_; }
  // Steps that are done here, applied or skipped by a change of plan; in the same order.
  const std::vector<int64_t>& clocks() const { return clocks_; }
  // `member` is one of members().
  int64_t clock(const Member& member) const { return clocks_[&member - members_.data()]; }
  void SetClock(const Member& member, int64_t clock);

  // Whether no member's clock is under `step`.
  bool IsReached(int64_t step) const;
  // Members whose clock is under `step`, in order of index, `most` of them: those for whom a start with this bound
  // waits.
  std::vector<v1::TaskId> Behind(int64_t step, size_t most) const;

  // Of all members; -1 when there is none.
  int64_t LowestClock() const { return members_.empty() ? -1 : lowest_; }

  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  void FindLowest();

  MemberList::Ptr list_ = std::make_shared<const MemberList>();
  std::vector<Member> members_;
  std::vector<int64_t> clocks_;
  // Of clocks_, and how many have it.
  int64_t lowest_ = -1;
  size_t at_lowest_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_STEP_GATE_H_
