#include "server/held_answers.h"

#include <algorithm>
#include <utility>

#include "common/task.h"

namespace rubato::server {
namespace {

// Whether the one ends before the other begins.
bool AreApart(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  const auto [lowest_a, highest_a] = std::minmax_element(a.begin(), a.end());
  const auto [lowest_b, highest_b] = std::minmax_element(b.begin(), b.end());
  return *highest_a < *lowest_b || *highest_b < *lowest_a;
}

}  // namespace

void HeldAnswers::Hold(const v1::TaskId& task, PartitionReply reply) { held_.push_back({task, std::move(reply)}); }

bool HeldAnswers::IsFull(uint32_t first_chunk) const {
  const auto count =
      std::count_if(held_.begin(), held_.end(), [&](const Held& held) { return held.first_chunk() == first_chunk; });
  return static_cast<size_t>(count) >= kMost;
}

bool HeldAnswers::Concern(const v1::TaskId& task, const std::vector<uint32_t>& chunks) const {
  if (chunks.empty()) return false;
  return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
    return SameTask(held.task, task) && !AreApart(held.reply.chunks, chunks);
  });
}

std::vector<PartitionReply> HeldAnswers::Take(uint32_t first_chunk) {
  std::vector<PartitionReply> taken;
  std::erase_if(held_, [&](Held& held) {
    if (held.first_chunk() != first_chunk) return false;
    taken.push_back(std::move(held.reply));
    return true;
  });
  return taken;
}

std::vector<PartitionReply> HeldAnswers::TakeAll() {
  std::vector<PartitionReply> taken;
  for (Held& held : std::exchange(held_, {})) taken.push_back(std::move(held.reply));
  return taken;
}

}  // namespace rubato::server
