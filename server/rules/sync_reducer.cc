#include "server/rules/sync_reducer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"
#include "server/rules/by_worker.h"

namespace rubato::server {

void SyncReducer::SetMembers(const v1::Plan& plan) {
  std::vector<Place> places;
  places.reserve(plan.members_size());
  count_ = 0;
  for (const v1::TaskId& task : plan.members()) {
    const size_t old = Find(task.index(), task.incarnation());
    Place place = {.worker = task.index(), .incarnation = task.incarnation()};
    if (old < places_.size()) place = std::move(places_[old]);
    if (place.taken) ++count_;
    places.push_back(std::move(place));
  }
  places_ = std::move(places);
}

size_t SyncReducer::Find(uint32_t worker, uint64_t incarnation) const {
  const size_t at = FindByWorker(places_, worker, [](const Place& place) { return place.worker; });
  return at < places_.size() && places_[at].incarnation == incarnation ? at : places_.size();
}

bool SyncReducer::Add(Contribution contribution) {
  const v1::TaskId& task = contribution.header->task;
  const size_t at = Find(task.index(), task.incarnation());
  if (at == places_.size()) return false;
  Place& place = places_[at];
  if (place.taken) {
    if (RUBATO_MUTANT(kReducerTakesTwice)) ++count_;
    return false;
  }
  place.taken = true;
  place.contribution = std::move(contribution);
  ++count_;
  return true;
}

bool SyncReducer::Has(uint32_t worker, uint64_t incarnation) const {
  const size_t at = Find(worker, incarnation);
  return at < places_.size() && places_[at].taken;
}

std::vector<Contribution> SyncReducer::Take() {
  std::vector<Contribution> taken;
  taken.reserve(count_);
  // Their headers lie where their requests were read.
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (i + kAhead < places_.size()) __builtin_prefetch(places_[i + kAhead].contribution.header.get());
    if (std::exchange(places_[i].taken, false)) taken.push_back(std::move(places_[i].contribution));
  }
  if (RUBATO_MUTANT(kReducerTakesTwice) && count_ > taken.size()) taken.push_back(taken.back());
  if (RUBATO_MUTANT(kReducerReverses)) std::reverse(taken.begin(), taken.end());
  if (RUBATO_MUTANT(kMeanLosesLast) && taken.size() > 1) taken.pop_back();
  count_ = 0;
  return taken;
}

void SyncReducer::AppendState(std::string* state) const {
  for (const Place& place : places_) {
    if (!place.taken) continue;
    const PushHeader& header = *place.contribution.header;
    absl::StrAppend(state, TaskName(header.task), "#", header.task.incarnation(), ",", header.generation, ",",
                    header.step, ",", place.contribution.examples, ";");
  }
}

}  // namespace rubato::server
