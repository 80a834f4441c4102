#include "server/rules/plan_window.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "server/rules/by_worker.h"

namespace rubato::server {

namespace {

// As IsMember needs them, also if a coordinator's plan has them otherwise.
void SortMembers(v1::Plan* plan) {
  auto* members = plan->mutable_members();
  const auto is_before = [](const v1::TaskId& a, const v1::TaskId& b) { return a.index() < b.index(); };
  if (!std::is_sorted(members->begin(), members->end(), is_before)) {
    std::stable_sort(members->begin(), members->end(), is_before);
  }
}

}  // namespace

bool IsMember(const v1::Plan& plan, uint32_t index, uint64_t incarnation) {
  const auto& members = plan.members();
  const size_t at = FindByWorker(members, index, [](const v1::TaskId& task) { return task.index(); });
  return at < static_cast<size_t>(members.size()) && members[static_cast<int>(at)].incarnation() == incarnation;
}

bool IsMember(const v1::Plan& plan, const v1::TaskId& task) {
  return task.role() == v1::TaskId::WORKER && IsMember(plan, task.index(), task.incarnation());
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
  SortMembers(&current_);
  members_ = std::make_shared<const MemberList>(current_);
  if (previous_.has_value()) {
    auto* members = previous_->mutable_members();
    members->erase(
        std::remove_if(members->begin(), members->end(), [&](const v1::TaskId& task) { return !IsMember(task); }),
        members->end());
  }
  return amends ? Change::kAmended : Change::kEntered;
}

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
