#include "server/rules/step_gate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"
#include "server/rules/by_worker.h"
#include "server/rules/plan_window.h"

namespace rubato::server {

v1::TaskId TaskOf(const StepGate::Member& member) {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(member.index);
  task.set_incarnation(member.incarnation);
  return task;
}

void StepGate::EnterPlan(const v1::Plan& plan, bool keep_clocks) {
  std::vector<Member> members;
  std::vector<int64_t> clocks;
  members.reserve(plan.members_size());
  clocks.reserve(plan.members_size());
  for (const v1::TaskId& task : plan.members()) {
    Member member = {.index = task.index(), .incarnation = task.incarnation()};
    int64_t clock = plan.first_step();
    if (const Member* old = Find(task); old != nullptr) {
      member = *old;
      if (keep_clocks) {
        clock = this->clock(*old);
      } else {
        member.draining = old->working && !RUBATO_MUTANT(kEntryForgetsWork);
        if (member.draining) --clock;
      }
    }
    members.push_back(member);
    clocks.push_back(clock);
  }
  members_ = std::move(members);
  clocks_ = std::move(clocks);
  FindLowest();
}

void StepGate::Amend(const v1::Plan& plan) {
  if (RUBATO_MUTANT(kAmendmentKeepsLost)) return;
  size_t kept = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (!IsMember(plan, members_[i].index, members_[i].incarnation)) continue;
    members_[kept] = members_[i];
    clocks_[kept] = clocks_[i];
    ++kept;
  }
  members_.resize(kept);
  clocks_.resize(kept);
  FindLowest();
}

StepGate::Member* StepGate::Find(const v1::TaskId& task) {
  if (task.role() != v1::TaskId::WORKER) return nullptr;
  const size_t at = FindByWorker(members_, task.index(), [](const Member& member) { return member.index; });
  return at < members_.size() && members_[at].incarnation == task.incarnation() ? &members_[at] : nullptr;
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
    if (clocks_[i] < step) behind.push_back(TaskOf(members_[i]));
  }
  return behind;
}

void StepGate::AppendState(std::string* state) const {
  for (const Member& member : members_) {
    absl::StrAppend(state, TaskName(v1::TaskId::WORKER, member.index), "#", member.incarnation, ",", clock(member), ",",
                    member.begun, ",", member.working, ",", member.draining, ";");
  }
}

}  // namespace rubato::server
