#include "server/rules/step_gate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"

namespace rubato::server {

void StepGate::EnterPlan(const v1::Plan& plan, bool keep_clocks) {
  std::vector<Member> next;
  for (const v1::TaskId& task : plan.members()) {
    Member member;
    if (const Member* old = Find(task); old != nullptr) {
      member = *old;
      if (!keep_clocks) {
        member.draining = old->working && !RUBATO_MUTANT(kEntryForgetsWork);
        member.clock = member.draining ? plan.first_step() - 1 : plan.first_step();
      }
    } else {
      member.task = task;
      member.clock = plan.first_step();
    }
    next.push_back(std::move(member));
  }
  members_ = std::move(next);
}

void StepGate::Amend(const v1::Plan& plan) {
  if (RUBATO_MUTANT(kAmendmentKeepsLost)) return;
  members_.erase(std::remove_if(members_.begin(), members_.end(),
                                [&](const Member& member) {
                                  for (const v1::TaskId& task : plan.members()) {
                                    if (SameTask(task, member.task)) return false;
                                  }
                                  return true;
                                }),
                 members_.end());
}

StepGate::Member* StepGate::Find(const v1::TaskId& task) {
  for (Member& member : members_) {
    if (SameTask(member.task, task)) return &member;
  }
  return nullptr;
}

const StepGate::Member* StepGate::Find(const v1::TaskId& task) const { return const_cast<StepGate*>(this)->Find(task); }

int64_t StepGate::LowestClock() const {
  int64_t lowest = -1;
  for (const Member& member : members_) lowest = lowest < 0 ? member.clock : std::min(lowest, member.clock);
  return lowest;
}

std::vector<v1::TaskId> StepGate::Behind(int64_t step) const {
  if (RUBATO_MUTANT(kGateOffByOne)) --step;
  std::vector<v1::TaskId> behind;
  for (const Member& member : members_) {
    if (member.clock < step) behind.push_back(member.task);
  }
  return behind;
}

void StepGate::AppendState(std::string* state) const {
  for (const Member& member : members_) {
    absl::StrAppend(state, TaskName(member.task), "#", member.task.incarnation(), ",", member.clock, ",", member.begun,
                    ",", member.working, ",", member.draining, ";");
  }
}

}  // namespace rubato::server
