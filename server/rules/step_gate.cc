#include "server/rules/step_gate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"

namespace rubato::server {

void StepGate::EnterPlan(MemberList::Ptr list, int64_t first_step, bool keep_clocks) {
  // All of them first, so that they lie side by side.
  for (size_t slot = 0; slot < list->size(); ++slot) clocks_.Of((*list)[slot].index);
  for (size_t slot = 0; slot < list->size(); ++slot) {
    const MemberList::Member& worker = (*list)[slot];
    Member& member = workers_.Of(worker.index).progress;
    int64_t& clock = clocks_.Of(worker.index);
    if (list_->Find(worker.index, worker.incarnation) == list_->size()) {
      member = {};
      clock = first_step;
    } else if (!keep_clocks) {
      member.draining = member.working && !RUBATO_MUTANT(kEntryForgetsWork);
      clock = member.draining ? first_step - 1 : first_step;
    }
  }
  list_ = std::move(list);
  FindLowest();
}

void StepGate::Amend(MemberList::Ptr list) {
  if (RUBATO_MUTANT(kAmendmentKeepsLost)) return;
  // An amendment adds nobody.
  EnterPlan(std::move(list), LowestClock(), /*keep_clocks=*/true);
}

StepGate::Member* StepGate::Find(const v1::TaskId& task) {
  return list_->Find(task) < list_->size() ? &workers_.Find(task.index())->progress : nullptr;
}

const StepGate::Member* StepGate::Find(const v1::TaskId& task) const { return const_cast<StepGate*>(this)->Find(task); }

void StepGate::SetClock(const v1::TaskId& task, int64_t clock) {
  const int64_t before = std::exchange(*clocks_.Find(task.index()), clock);
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
  for (size_t slot = 0; slot < list_->size(); ++slot) {
    const int64_t own = clock(slot);
    if (at_lowest_ == 0 || own < lowest_) {
      lowest_ = own;
      at_lowest_ = 1;
    } else if (own == lowest_) {
      ++at_lowest_;
    }
  }
}

bool StepGate::IsReached(int64_t step) const {
  if (RUBATO_MUTANT(kGateOffByOne)) --step;
  return list_->size() == 0 || lowest_ >= step;
}

std::vector<v1::TaskId> StepGate::Behind(int64_t step, size_t most) const {
  if (RUBATO_MUTANT(kGateOffByOne)) --step;
  std::vector<v1::TaskId> behind;
  for (size_t slot = 0; slot < list_->size() && behind.size() < most; ++slot) {
    if (clock(slot) < step) behind.push_back(list_->TaskOf(slot));
  }
  return behind;
}

void StepGate::AppendState(std::string* state) const {
  for (size_t slot = 0; slot < list_->size(); ++slot) {
    const Member& at = member(slot);
    const MemberList::Member& worker = (*list_)[slot];
    absl::StrAppend(state, TaskName(v1::TaskId::WORKER, worker.index), "#", worker.incarnation, ",", clock(slot), ",",
                    at.begun, ",", at.working, ",", at.draining, ";");
  }
}

}  // namespace rubato::server
