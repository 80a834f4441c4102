#include "tests/simulation/sim_data.h"

#include <algorithm>

namespace rubato::simulation {
namespace {

constexpr size_t kWanted = 2;

}  // namespace

void SimData::Ask() {
  if (!open_) {
    const auto unused =
        std::count_if(held_.begin(), held_.end(), [](const Shard& shard) { return shard.next < shard.end; });
    if (finished_.empty() && static_cast<size_t>(unused) >= kWanted) return;
    open_ = true;
    request_.set_request_id(request_.request_id() + 1);
    request_.clear_finished_shards();
    for (const Shard& shard : finished_) request_.add_finished_shards(shard.number);
  }
  send_(request_);
}

bool SimData::OnGrant(const v1::ShardGrant& grant) {
  if (!open_ || grant.request_id() != request_.request_id()) return false;
  open_ = false;
  const auto& sent = request_.finished_shards();
  finished_.erase(std::remove_if(finished_.begin(), finished_.end(),
                                 [&sent](const Shard& shard) {
                                   return std::find(sent.begin(), sent.end(), shard.number) != sent.end();
                                 }),
                  finished_.end());
  used_up_ |= grant.result() == v1::ShardGrant::DONE;
  if (grant.result() != v1::ShardGrant::GRANTED) return false;
  held_.push_back({grant.shard(), grant.begin(), grant.end()});
  return true;
}

void SimData::StepBegins() {
  while (!held_.empty() && held_.front().next == held_.front().end) {
    finished_.push_back(held_.front());
    held_.erase(held_.begin());
  }
}

std::vector<v1::ShardPosition> SimData::Positions() const {
  std::vector<v1::ShardPosition> positions;
  for (const std::vector<Shard>* shards : {&finished_, &held_}) {
    for (const Shard& shard : *shards) {
      v1::ShardPosition& position = positions.emplace_back();
      position.set_shard(shard.number);
      position.set_next(shard.next);
    }
  }
  return positions;
}

SimData::Batch SimData::Take(int64_t most) {
  for (Shard& shard : held_) {
    if (shard.next == shard.end) continue;
    Batch batch{shard.number, shard.next, std::min(shard.end, shard.next + most)};
    shard.next = batch.end;
    return batch;
  }
  return {};
}

}  // namespace rubato::simulation
