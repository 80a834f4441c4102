#include "server/rules/plan_window.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"

namespace rubato::server {

bool IsMember(const v1::Plan& plan, const v1::TaskId& task) {
  return std::any_of(plan.members().begin(), plan.members().end(),
                     [&](const v1::TaskId& member) { return SameTask(member, task); });
}

void PlanWindow::Announce(uint64_t generation) {
  if (generation > current_.generation() || RUBATO_MUTANT(kStaleAnnouncementHolds)) {
    announced_ = std::max(announced_, generation);
  }
}

bool PlanWindow::Abort(uint64_t generation) {
  if (announced_ != generation) return false;
  announced_ = 0;
  return true;
}

PlanWindow::Change PlanWindow::Commit(const v1::Plan& plan) {
  if (plan.generation() < current_.generation() && !RUBATO_MUTANT(kOldPlanTaken)) return Change::kNone;
  const bool amends = plan.generation() == current_.generation();
  if (amends && plan.amendment() == current_.amendment()) return Change::kNone;
  if (amends && plan.amendment() < current_.amendment() && !RUBATO_MUTANT(kOldAmendmentTaken)) return Change::kNone;
  if (!amends) {
    previous_.reset();
    if (current_.generation() != 0) previous_ = current_;
    if (announced_ <= plan.generation()) announced_ = 0;
  }
  current_ = plan;
  if (previous_.has_value()) {
    auto* members = previous_->mutable_members();
    members->erase(
        std::remove_if(members->begin(), members->end(), [&](const v1::TaskId& task) { return !IsMember(task); }),
        members->end());
  }
  return amends ? Change::kAmended : Change::kEntered;
}

bool PlanWindow::IsMember(const v1::TaskId& task) const { return server::IsMember(current_, task); }

const v1::Plan* PlanWindow::PlanOf(uint64_t generation, int64_t step) const {
  if (generation == current_.generation()) return step >= current_.first_step() ? &current_ : nullptr;
  const bool drains = previous_.has_value() && generation == previous_->generation() && step < current_.first_step();
  return drains ? &*previous_ : nullptr;
}

void PlanWindow::AppendState(std::string* state) const {
  absl::StrAppend(state, current_.SerializeAsString(), ";",
                  previous_.has_value() ? previous_->SerializeAsString() : "none", ";", announced_, ";");
}

}  // namespace rubato::server
