#include "server/weight_leases.h"

#include <utility>

namespace rubato::server {

void WeightLeases::TakeBack(uint64_t session, const v1::TaskId& task, const std::vector<uint32_t>& chunks) {
  Lease& lease = leases_[session];
  lease.task = task;
  for (uint32_t chunk : chunks) lease.buffers.erase(chunk);
}

void WeightLeases::Lend(uint64_t session, uint32_t chunk, std::shared_ptr<const void> buffer) {
  leases_[session].buffers[chunk] = std::move(buffer);
}

void WeightLeases::DropDead() {
  absl::erase_if(leases_, [this](const auto& lease) { return !session_lives_(lease.first, lease.second.task); });
}

}  // namespace rubato::server
