#include "server/rules/sync_reducer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"
#include "server/rules/plan_window.h"

namespace rubato::server {

bool SyncReducer::Add(Contribution contribution) {
  const bool is_new = there_.emplace(contribution.task.index(), contribution.task.incarnation()).second;
  if (!is_new && !RUBATO_MUTANT(kReducerTakesTwice)) return false;
  pending_.push_back(std::move(contribution));
  return true;
}

bool SyncReducer::Has(uint32_t worker, uint64_t incarnation) const {
  const auto found = there_.find(worker);
  return found != there_.end() && found->second == incarnation;
}

void SyncReducer::KeepMembers(const v1::Plan& plan) {
  const auto is_lost = [&](const Contribution& contribution) { return !IsMember(plan, contribution.task); };
  std::erase_if(pending_, is_lost);
  absl::erase_if(there_, [&](const auto& worker) { return !IsMember(plan, worker.first, worker.second); });
}

std::vector<size_t> SyncReducer::Order() const {
  std::vector<std::pair<uint32_t, size_t>> by_worker;
  by_worker.reserve(pending_.size());
  for (size_t i = 0; i < pending_.size(); ++i) by_worker.emplace_back(pending_[i].task.index(), i);
  if (!RUBATO_MUTANT(kReducerByArrival)) std::sort(by_worker.begin(), by_worker.end());
  std::vector<size_t> order;
  order.reserve(by_worker.size());
  for (const auto& [worker, position] : by_worker) order.push_back(position);
  return order;
}

std::vector<Contribution> SyncReducer::Take() {
  std::vector<Contribution> taken;
  taken.reserve(pending_.size());
  // They lie in the order in which they came, long ago.
  constexpr size_t kAhead = 8;
  const std::vector<size_t> order = Order();
  for (size_t i = 0; i < order.size(); ++i) {
    if (i + kAhead < order.size()) __builtin_prefetch(&pending_[order[i + kAhead]]);
    taken.push_back(std::move(pending_[order[i]]));
  }
  if (RUBATO_MUTANT(kMeanLosesLast) && taken.size() > 1) taken.pop_back();
  pending_.clear();
  there_.clear();
  return taken;
}

void SyncReducer::AppendState(std::string* state) const {
  for (const size_t position : Order()) {
    const Contribution& contribution = pending_[position];
    absl::StrAppend(state, TaskName(contribution.task), "#", contribution.task.incarnation(), ",",
                    contribution.generation, ",", contribution.step, ",", contribution.examples, ";");
  }
}

}  // namespace rubato::server
