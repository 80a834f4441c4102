#include "server/rules/sync_reducer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"
#include "server/rules/plan_window.h"

namespace rubato::server {

bool SyncReducer::Add(Contribution contribution) {
  auto at = std::find_if(pending_.begin(), pending_.end(),
                         [&](const Contribution& c) { return c.task.index() >= contribution.task.index(); });
  const bool there = at != pending_.end() && at->task.index() == contribution.task.index();
  if (there && !RUBATO_MUTANT(kReducerTakesTwice)) return false;
  if (RUBATO_MUTANT(kReducerByArrival)) at = pending_.end();
  pending_.insert(at, std::move(contribution));
  return true;
}

bool SyncReducer::Has(const v1::TaskId& task) const {
  return std::any_of(pending_.begin(), pending_.end(), [&](const Contribution& c) { return SameTask(c.task, task); });
}

void SyncReducer::KeepMembers(const v1::Plan& plan) {
  pending_.erase(
      std::remove_if(pending_.begin(), pending_.end(), [&](const Contribution& c) { return !IsMember(plan, c.task); }),
      pending_.end());
}

std::vector<v1::TaskId> SyncReducer::Missing(const v1::Plan& plan) const {
  std::vector<v1::TaskId> missing;
  for (const v1::TaskId& member : plan.members()) {
    if (!Has(member)) missing.push_back(member);
  }
  return missing;
}

std::vector<Contribution> SyncReducer::Take() {
  if (RUBATO_MUTANT(kMeanLosesLast) && pending_.size() > 1) pending_.pop_back();
  return std::exchange(pending_, {});
}

void SyncReducer::AppendState(std::string* state) const {
  for (const Contribution& contribution : pending_) {
    absl::StrAppend(state, TaskName(contribution.task), "#", contribution.task.incarnation(), ",",
                    contribution.generation, ",", contribution.step, ",", contribution.examples, ";");
  }
}

}  // namespace rubato::server
