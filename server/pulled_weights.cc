#include "server/pulled_weights.h"

#include <algorithm>
#include <utility>

#include "common/task.h"
#include "server/rules/plan_window.h"

namespace rubato::server {

void PulledWeights::Note(const v1::TaskId& worker, int64_t version, FloatBuffer::Ptr weights) {
  Forget(worker);
  entries_.push_back({worker, version, std::move(weights)});
}

FloatBuffer::Ptr PulledWeights::Take(const v1::TaskId& worker, int64_t base_version) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return SameTask(entry.worker, worker); });
  if (found == entries_.end()) return nullptr;
  FloatBuffer::Ptr weights = found->version == base_version ? std::move(found->weights) : nullptr;
  entries_.erase(found);
  return weights;
}

void PulledWeights::Forget(const v1::TaskId& worker) {
  std::erase_if(entries_, [&](const Entry& entry) { return SameTask(entry.worker, worker); });
}

void PulledWeights::KeepMembers(const v1::Plan& plan) {
  std::erase_if(entries_, [&](const Entry& entry) { return !IsMember(plan, entry.worker); });
}

}  // namespace rubato::server
