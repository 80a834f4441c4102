#include "cli/audit/plan_agreement.h"

#include "absl/strings/str_cat.h"
#include "common/task.h"

namespace rubato {

void PlanAgreement::OnPlan(const std::string& where, const v1::Plan& plan) {
  std::string rules = absl::StrCat(ModeName(plan.mode(), plan.staleness_bound()), " with quorum ", plan.quorum(),
                                   " from step ", plan.first_step());
  std::string members = "members";
  for (const v1::TaskId& task : plan.members()) {
    absl::StrAppend(&members, " ", task.index(), ":", absl::Hex(task.incarnation()));
  }
  const Said said_rules = {std::move(rules), where}, said_members = {std::move(members), where};
  Compare(rules_.try_emplace(plan.generation(), said_rules).first->second, said_rules, plan.generation());
  const auto key = std::make_pair(plan.generation(), plan.amendment());
  Compare(members_.try_emplace(key, said_members).first->second, said_members, plan.generation());
}

void PlanAgreement::Compare(const Said& first, const Said& other, uint64_t generation) {
  if (first.text == other.text) return;
  report_->Break(Invariant::kPlans, [&] {
    return absl::StrCat("plan ", generation, ": ", first.where, " says ", first.text, ", ", other.where, " says ",
                        other.text);
  });
}

}  // namespace rubato
