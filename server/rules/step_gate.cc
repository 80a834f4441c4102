#include "server/rules/step_gate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"

namespace rubato::server {

void StepGate::EnterPlan(MemberList::Ptr list, int64_t first_step, bool keep_clocks) {
  std::vector<Member> members(list->size());
  std::vector<int64_t> clocks(list->size(), first_step);
  for (size_t slot = 0; slot < list->size(); ++slot) {
    const size_t old = list_->Find((*list)[slot].index, (*list)[slot].incarnation);
    if (old == list_->size()) continue;
    Member& member = members[slot] = members_[old];
    if (keep_clocks) {
      clocks[slot] = clocks_[old];
    } else {
      member.draining = member.working && !RUBATO_MUTANT(kEntryForgetsWork);
      if (member.draining) --clocks[slot];
    }
  }
  list_ = std::move(list);
  members_ = std::move(members);
  clocks_ = std::move(clocks);
  FindLowest();
}

void StepGate::Amend(MemberList::Ptr list) {
  if (RUBATO_MUTANT(kAmendmentKeepsLost)) return;
  // An amendment adds nobody.
  EnterPlan(std::move(list), LowestClock(), /*keep_clocks=*/true);
}

StepGate::Member* StepGate::Find(const v1::TaskId& task) {
  const size_t slot = list_->Find(task);
  return slot < members_.size() ? &members_[slot] : nullptr;
}

const StepGate::Member* StepGate::Find(const v1::TaskId& task) const { return const_cast<StepGate*>(this)->Find(task); }

void StepGate::SetClock(const Member& member, int64_t clock) {
  int64_t& own = clocks_[&member - members_.data()];
  const int64_t before = std::exchange(own, clock);
  if (clock < lowest_) {
    lowest_ = clock;
    at_lowest_ = 1;
  } else if (clock == lowest_ && before != lowest_) {
    ++at_lowest_;
  } else if (before == lowest_ && clock != lowest_ && --at_lowest_ == 0) {
    FindLowest();
  }
}

void StepGate::FindLowest() {
  lowest_ = -1;
  at_lowest_ = 0;
  if (clocks_.empty()) return;
  lowest_ = *std::min_element(clocks_.begin(), clocks_.end());
  at_lowest_ = static_cast<size_t>(std::count(clocks_.begin(), clocks_.end(), lowest_));
}

bool StepGate::IsReached(int64_t step) const {
  if (RUBATO_MUTANT(kGateOffByOne)) --step;
  return members_.empty() || lowest_ >= step;
}

std::vector<v1::TaskId> StepGate::Behind(int64_t step, size_t most) const {
  if (RUBATO_MUTANT(kGateOffByOne)) --step;
  std::vector<v1::TaskId> behind;
  for (size_t i = 0; i < members_.size() && behind.size() < most; ++i) {
    if (clocks_[i] < step) behind.push_back(list_->TaskOf(i));
  }
  return behind;
}

void StepGate::AppendState(std::string* state) const {
  for (size_t slot = 0; slot < members_.size(); ++slot) {
    const Member& member = members_[slot];
    const MemberList::Member& worker = (*list_)[slot];
    absl::StrAppend(state, TaskName(v1::TaskId::WORKER, worker.index), "#", worker.incarnation, ",", clocks_[slot], ",",
                    member.begun, ",", member.working, ",", member.draining, ";");
  }
}

}  // namespace rubato::server
