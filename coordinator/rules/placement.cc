#include "coordinator/rules/placement.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace rubato::coordinator {
namespace {

constexpr int64_t kAlignment = 16;
constexpr int64_t kMaxChunks = (int64_t{1} << 31) - 1;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Bytes in a place, then the order in which equally full places are taken.
using Place = std::tuple<int64_t, uint32_t, uint32_t>;

}  // namespace

absl::StatusOr<std::vector<v1::ChunkPlacement>> SplitIntoChunks(const ModelSpec& model, uint64_t chunk_bytes) {
  if (chunk_bytes < kAlignment * sizeof(float)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster.chunk_bytes: value ", chunk_bytes, "; allowed: 64 or more"));
  }
  const int64_t largest = static_cast<int64_t>(chunk_bytes / sizeof(float)) / kAlignment * kAlignment;
  std::vector<v1::ChunkPlacement> chunks;
  for (size_t tensor = 0; tensor < model.tensors.size(); ++tensor) {
    const int64_t elements = NumElements(model.tensors[tensor].shape);
    if (elements <= 0) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", model.tensors[tensor].name, " has no elements"));
    }
    const int64_t parts = (elements + largest - 1) / largest;
    if (parts > kMaxChunks - static_cast<int64_t>(chunks.size())) {
      return absl::InvalidArgumentError(absl::StrCat("cluster.chunk_bytes: value ", chunk_bytes,
                                                     " cuts the model into more than ", kMaxChunks,
                                                     " chunks; choose a larger one"));
    }
    const int64_t length = parts == 1 ? elements : RoundUp((elements + parts - 1) / parts, kAlignment);
    for (int64_t offset = 0; offset < elements; offset += length) {
      v1::ChunkPlacement& chunk = chunks.emplace_back();
      chunk.set_tensor(static_cast<uint32_t>(tensor));
      chunk.set_offset(offset);
      chunk.set_length(std::min(length, elements - offset));
    }
  }
  for (size_t table = 0; table < model.tables.size(); ++table) {
    for (uint32_t shard = 0; shard < model.tables[table].config.shards(); ++shard) {
      v1::ChunkPlacement& chunk = chunks.emplace_back();
      chunk.set_tensor(static_cast<uint32_t>(model.tensors.size() + table));
      chunk.set_offset(shard);
    }
  }
  return chunks;
}

void PlaceChunks(const std::vector<uint32_t>& servers, uint32_t partitions_per_server,
                 std::vector<v1::ChunkPlacement>* chunks) {
  std::set<Place> places;
  for (uint32_t partition = 0; partition < partitions_per_server; ++partition) {
    for (uint32_t server : servers) places.emplace(0, partition, server);
  }
  std::vector<size_t> order(chunks->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return (*chunks)[a].length() > (*chunks)[b].length(); });
  size_t shards = 0;
  for (size_t index : order) {
    v1::ChunkPlacement& chunk = (*chunks)[index];
    if (chunk.length() == 0) {
      chunk.set_server(servers[shards % servers.size()]);
      chunk.set_partition(shards++ / servers.size() % partitions_per_server);
      continue;
    }
    auto [elements, partition, server] = *places.begin();
    places.erase(places.begin());
    chunk.set_server(server);
    chunk.set_partition(partition);
    places.emplace(elements + chunk.length(), partition, server);
  }
}

}  // namespace rubato::coordinator
