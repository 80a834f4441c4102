#include "server/pulled_weights.h"

#include <utility>

#include "server/rules/plan_window.h"

namespace rubato::server {

void PulledWeights::Note(const v1::TaskId& worker, int64_t version, FloatBuffer::Ptr weights) {
  entries_[{worker.index(), worker.incarnation()}] = {version, std::move(weights)};
}

FloatBuffer::Ptr PulledWeights::Take(const v1::TaskId& worker, int64_t base_version) {
  const auto found = entries_.find(Worker(worker.index(), worker.incarnation()));
  if (found == entries_.end()) return nullptr;
  FloatBuffer::Ptr weights = found->second.version == base_version ? std::move(found->second.weights) : nullptr;
  entries_.erase(found);
  return weights;
}

void PulledWeights::Forget(const v1::TaskId& worker) { entries_.erase(Worker(worker.index(), worker.incarnation())); }

void PulledWeights::KeepMembers(const v1::Plan& plan) {
  absl::erase_if(entries_, [&](const auto& entry) { return !IsMember(plan, entry.first.first, entry.first.second); });
}

}  // namespace rubato::server
