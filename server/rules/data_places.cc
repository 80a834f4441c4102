#include "server/rules/data_places.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "server/rules/plan_window.h"

namespace rubato::server {
namespace {

// Plans that are entered while a lost worker is kept.
constexpr int kPlansKept = 1;

}  // namespace

void DataPlaces::Note(const v1::TaskId& worker, int64_t step, const v1::ShardSlice& slice) {
  if (slice.shard() == 0) return;
  v1::LostWorker& reached = places_[worker.incarnation()].reached;
  const bool known = reached.has_task();
  if (known && (step <= reached.step() || RUBATO_MUTANT(kFirstPlaceKept))) return;
  *reached.mutable_task() = worker;
  reached.set_step(step);
  reached.mutable_trained()->set_shard(slice.shard());
  reached.mutable_trained()->set_next(slice.end());
}

void DataPlaces::OnPlan(const v1::Plan& plan, bool entered) {
  for (auto it = places_.begin(); it != places_.end();) {
    Place& place = it->second;
    if (place.lost && entered) ++place.plans_entered;
    place.lost = place.lost || !IsMember(plan, place.reached.task());
    it = place.plans_entered > kPlansKept ? places_.erase(it) : std::next(it);
  }
}

std::vector<v1::LostWorker> DataPlaces::Lost() const {
  std::vector<v1::LostWorker> lost;
  for (const auto& [incarnation, place] : places_) {
    if (place.lost) lost.push_back(place.reached);
  }
  return lost;
}

void DataPlaces::AppendState(std::string* state) const {
  for (const auto& [incarnation, place] : places_) {
    const v1::LostWorker& reached = place.reached;
    absl::StrAppend(state, "place ", incarnation, ",", reached.step(), ",", reached.trained().shard(), ",",
                    reached.trained().next(), ",", place.lost, ",", place.plans_entered, ";");
  }
}

}  // namespace rubato::server
