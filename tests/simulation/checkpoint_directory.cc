#include "tests/simulation/checkpoint_directory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace rubato::simulation {

void CheckpointDirectory::BeginWrite(const v1::TaskId& task, const v1::Cut& cut) {
  parts_.erase({cut.name(), task.role(), task.index()});
}

void CheckpointDirectory::Write(const v1::TaskId& task, Part part) {
  Part& there = parts_[{part.cut.name(), task.role(), task.index()}];
  there = std::move(part);
}

const CheckpointDirectory::Part* CheckpointDirectory::Find(const v1::Cut& cut, v1::TaskId::Role role,
                                                           uint32_t index) const {
  auto it = parts_.find({cut.name(), role, index});
  return it == parts_.end() || it->second.cut.id() != cut.id() ? nullptr : &it->second;
}

std::optional<std::map<uint32_t, ChunkState>> CheckpointDirectory::ReadChunks(const v1::Cut& cut) const {
  for (const auto& [key, part] : parts_) {
    const auto& [name, role, index] = key;
    if (name != cut.name() || role != v1::TaskId::SERVER || part.cut.id() != cut.id()) continue;
    std::map<uint32_t, ChunkState> chunks;
    for (uint32_t server : part.servers) {
      const Part* other = Find(cut, v1::TaskId::SERVER, server);
      if (other == nullptr) return std::nullopt;
      chunks.insert(other->chunks.begin(), other->chunks.end());
    }
    return chunks;
  }
  return std::nullopt;
}

void CheckpointDirectory::Keep(const v1::TaskId& task, const v1::KeepCheckpoints& keep, const v1::Cut& last) {
  for (auto it = parts_.begin(); it != parts_.end();) {
    const auto& [name, role, index] = it->first;
    const bool kept = std::find(keep.names().begin(), keep.names().end(), name) != keep.names().end() ||
                      it->second.cut.id() == last.id();
    const bool removed = role == task.role() && index == task.index() && absl::StartsWith(name, "step") && !kept;
    it = removed ? parts_.erase(it) : std::next(it);
  }
}

}  // namespace rubato::simulation
