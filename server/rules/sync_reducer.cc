#include "server/rules/sync_reducer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"

namespace rubato::server {

void SyncReducer::SetMembers(MemberList::Ptr list) {
  std::vector<Contribution> contributions(list->size());
  std::vector<bool> taken(list->size());
  count_ = 0;
  for (size_t slot = 0; slot < list->size(); ++slot) {
    const size_t old = list_->Find((*list)[slot].index, (*list)[slot].incarnation);
    if (old == list_->size() || !taken_[old]) continue;
    contributions[slot] = std::move(contributions_[old]);
    taken[slot] = true;
    ++count_;
  }
  list_ = std::move(list);
  contributions_ = std::move(contributions);
  taken_ = std::move(taken);
}

bool SyncReducer::Add(Contribution contribution) {
  const v1::TaskId& task = contribution.header->task;
  const size_t slot = list_->Find(task.index(), task.incarnation());
  if (slot == list_->size()) return false;
  if (taken_[slot]) {
    if (RUBATO_MUTANT(kReducerTakesTwice)) ++count_;
    return false;
  }
  taken_[slot] = true;
  contributions_[slot] = std::move(contribution);
  ++count_;
  return true;
}

std::vector<Contribution> SyncReducer::Take() {
  std::vector<Contribution> taken;
  taken.reserve(count_);
  // Their headers lie where their requests were read.
  constexpr size_t kAhead = 8;
  for (size_t slot = 0; slot < taken_.size(); ++slot) {
    if (slot + kAhead < taken_.size()) __builtin_prefetch(contributions_[slot + kAhead].header.get());
    if (taken_[slot]) taken.push_back(std::move(contributions_[slot]));
  }
  taken_.assign(taken_.size(), false);
  if (RUBATO_MUTANT(kReducerTakesTwice) && count_ > taken.size()) taken.push_back(taken.back());
  if (RUBATO_MUTANT(kReducerReverses)) std::reverse(taken.begin(), taken.end());
  if (RUBATO_MUTANT(kMeanLosesLast) && taken.size() > 1) taken.pop_back();
  count_ = 0;
  return taken;
}

void SyncReducer::AppendState(std::string* state) const {
  for (size_t slot = 0; slot < taken_.size(); ++slot) {
    if (!taken_[slot]) continue;
    const PushHeader& header = *contributions_[slot].header;
    absl::StrAppend(state, TaskName(header.task), "#", header.task.incarnation(), ",", header.generation, ",",
                    header.step, ",", contributions_[slot].examples, ";");
  }
}

}  // namespace rubato::server
