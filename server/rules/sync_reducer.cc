#include "server/rules/sync_reducer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"

namespace rubato::server {

void SyncReducer::SetMembers(MemberList::Ptr list) {
  std::vector<bool> taken(list->size());
  count_ = 0;
  for (size_t slot = 0; slot < list_->size(); ++slot) {
    if (!taken_[slot]) continue;
    const MemberList::Member& worker = (*list_)[slot];
    const size_t kept = list->Find(worker.index, worker.incarnation);
    if (kept == list->size()) {
      workers_.Of(worker.index).contribution = {};
    } else {
      taken[kept] = true;
      ++count_;
    }
  }
  list_ = std::move(list);
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
  workers_.Of(task.index()).contribution = std::move(contribution);
  ++count_;
  return true;
}

std::vector<Contribution> SyncReducer::Take() {
  std::vector<Contribution> taken;
  taken.reserve(count_);
  for (size_t slot = 0; slot < taken_.size(); ++slot) {
    if (taken_[slot]) taken.push_back(std::move(workers_.Of((*list_)[slot].index).contribution));
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
    const Contribution& contribution = workers_.Find((*list_)[slot].index)->contribution;
    const PushHeader& header = *contribution.header;
    absl::StrAppend(state, TaskName(header.task), "#", header.task.incarnation(), ",", header.generation, ",",
                    header.step, ",", contribution.examples, ";");
  }
}

}  // namespace rubato::server
