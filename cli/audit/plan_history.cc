#include "cli/audit/plan_history.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/task.h"

namespace rubato {
namespace {

// Takes away the members that are not among `members`.
void Trim(AuditedPlan& plan, const std::vector<bool>& members) {
  for (size_t i = 0; i < plan.members.size(); ++i) {
    plan.members[i] = plan.members[i] && i < members.size() && members[i];
  }
  plan.member_count = std::count(plan.members.begin(), plan.members.end(), true);
}

bool SameRules(const v1::Plan& a, const v1::Plan& b) {
  return a.mode() == b.mode() && a.staleness_bound() == b.staleness_bound() && a.quorum() == b.quorum() &&
         a.first_step() == b.first_step();
}

}  // namespace

size_t PlanHistory::NumberOf(uint32_t worker, uint64_t incarnation) {
  auto [it, is_new] = numbers_.try_emplace({worker, incarnation}, workers_.size());
  if (is_new) workers_.push_back(worker);
  return it->second;
}

std::vector<bool> PlanHistory::MembersOf(const v1::Plan& plan) {
  std::vector<bool> members;
  for (const v1::TaskId& task : plan.members()) {
    const size_t number = NumberOf(task.index(), task.incarnation());
    if (number >= members.size()) members.resize(number + 1);
    members[number] = true;
  }
  return members;
}

const AuditedPlan* PlanHistory::Find(uint64_t generation) const {
  if (current_.has_value() && current_->plan.generation() == generation) return &*current_;
  if (previous_.has_value() && previous_->plan.generation() == generation) return &*previous_;
  return nullptr;
}

PlanHistory::Change PlanHistory::Enter(const v1::Plan& plan, int64_t highest_step) {
  report_->Check(Invariant::kPlans);
  if (current_.has_value()) {
    const v1::Plan& now = current_->plan;
    const auto order = std::make_pair(plan.generation(), plan.amendment());
    const auto order_now = std::make_pair(now.generation(), now.amendment());
    if (order <= order_now) {
      if (order < order_now) {
        report_->Break(Invariant::kPlans, [&] {
          return absl::StrCat(where_, ": plan ", plan.generation(), " (amendment ", plan.amendment(), ") after plan ",
                              now.generation(), " (amendment ", now.amendment(), ")");
        });
      }
      return Change::kNone;
    }
    if (plan.generation() == now.generation()) {
      Amend(plan);
      return Change::kAmended;
    }
    CheckSuccessor(plan, highest_step);
    current_->end_step = plan.first_step();
    previous_ = std::move(current_);
  }
  AuditedPlan next;
  next.plan = plan;
  next.members = MembersOf(plan);
  next.member_count = std::count(next.members.begin(), next.members.end(), true);
  next.staleness = &report_->staleness[ModeName(plan.mode(), plan.staleness_bound())];
  current_ = std::move(next);
  if (previous_.has_value()) Trim(*previous_, current_->members);
  return Change::kNew;
}

void PlanHistory::Amend(const v1::Plan& plan) {
  const std::vector<bool> members = MembersOf(plan);
  bool joined = false;
  for (size_t i = 0; i < members.size(); ++i) joined = joined || (members[i] && !current_->HasMember(i));
  if (joined || !SameRules(plan, current_->plan)) {
    report_->Break(Invariant::kPlans, [&] {
      return absl::StrCat(where_, ": amendment ", plan.amendment(), " of plan ", plan.generation(),
                          joined ? " adds a member" : " changes its mode, bound, quorum or first step");
    });
  }
  current_->plan.set_amendment(plan.amendment());
  Trim(*current_, members);
  if (previous_.has_value()) Trim(*previous_, members);
}

void PlanHistory::CheckSuccessor(const v1::Plan& plan, int64_t highest_step) {
  if (plan.first_step() > highest_step && plan.first_step() >= current_->plan.first_step()) return;
  report_->Break(Invariant::kPlans, [&] {
    return absl::StrCat(where_, ": plan ", plan.generation(), " begins with step ", plan.first_step(),
                        ", although step ", std::max(highest_step, current_->plan.first_step()), " belongs to plan ",
                        current_->plan.generation());
  });
}

}  // namespace rubato
