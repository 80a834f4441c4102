#include "tests/simulation/chunk_groups.h"

#include <map>
#include <utility>

#include "common/table_keys.h"

namespace rubato::simulation {

std::vector<ChunkGroup> GroupChunks(const std::vector<v1::ChunkPlacement>& chunks, Random& random) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> partitions;
  for (uint32_t chunk = 0; chunk < chunks.size(); ++chunk) {
    partitions[{chunks[chunk].server(), chunks[chunk].partition()}].push_back(chunk);
  }
  std::vector<ChunkGroup> groups;
  for (const auto& [key, members] : partitions) {
    for (size_t i = 0; i < members.size(); ++i) {
      const bool other_kind = i > 0 && IsShard(chunks[members[i]]) != IsShard(chunks[members[i - 1]]);
      if (i == 0 || other_kind || random.Below(2) == 0) groups.push_back({key.first, key.second, {}});
      groups.back().chunks.push_back(members[i]);
    }
  }
  for (size_t i = groups.size(); i > 1; --i) std::swap(groups[i - 1], groups[random.Below(i)]);
  return groups;
}

}  // namespace rubato::simulation
