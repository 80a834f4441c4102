#include "worker/ps_client/batching.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "common/table_keys.h"

namespace rubato::worker {
namespace {

// A batch is pushed when the last of its tensors is ready, so a tensor that is worth a message of its own does not wait
// for another one.
bool MayJoin(const v1::JobDescription& job, const ChunkBatch& batch, const v1::ChunkPlacement& chunk, int64_t bytes,
             int64_t most, int64_t small) {
  if (batch.bytes + bytes > most) return false;
  if (job.chunks(batch.chunks.back()).tensor() == chunk.tensor()) return true;
  return bytes <= small || batch.bytes <= small;
}

// Those of tables.
void AddShards(const v1::JobDescription& job, int tensors, Batching* result) {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, int> known;  // By table, server and partition.
  for (int index = 0; index < job.chunks_size(); ++index) {
    const v1::ChunkPlacement& chunk = job.chunks(index);
    if (!IsShard(chunk)) continue;
    const uint32_t table = chunk.tensor() - static_cast<uint32_t>(tensors);
    const auto [it, is_new] =
        known.try_emplace({table, chunk.server(), chunk.partition()}, static_cast<int>(result->batches.size()));
    if (is_new) result->batches.push_back({chunk.server(), chunk.partition(), {}, 0, static_cast<int>(table)});
    result->batches[it->second].chunks.push_back(static_cast<uint32_t>(index));
    if (result->batch_of_shard.size() <= table) result->batch_of_shard.resize(table + 1);
    result->batch_of_shard[table].push_back(it->second);
  }
}

}  // namespace

Batching MakeBatches(const v1::JobDescription& job, int tensors, int64_t message_bytes,
                     const std::function<bool(uint32_t server)>& reads_in_place) {
  Batching result;
  // The batch of each (server, partition) that may still grow.
  std::map<std::pair<uint32_t, uint32_t>, int> growing;
  for (int index = 0; index < job.chunks_size(); ++index) {
    const v1::ChunkPlacement& chunk = job.chunks(index);
    if (IsShard(chunk)) continue;
    const int64_t bytes = chunk.length() * static_cast<int64_t>(sizeof(float));
    auto [it, is_new] = growing.try_emplace({chunk.server(), chunk.partition()}, -1);
    const int64_t most = reads_in_place(chunk.server()) ? kMessagesInPlace * message_bytes : message_bytes;
    if (is_new || !MayJoin(job, result.batches[it->second], chunk, bytes, most, message_bytes / kSmallPartOfMessage)) {
      it->second = static_cast<int>(result.batches.size());
      result.batches.push_back({.server = chunk.server(), .partition = chunk.partition(), .chunks = {}});
    }
    ChunkBatch& batch = result.batches[it->second];
    batch.chunks.push_back(static_cast<uint32_t>(index));
    batch.bytes += bytes;
  }
  AddShards(job, tensors, &result);
  result.parts_of_tensor.resize(tensors);
  result.tensors_of_batch.resize(result.batches.size());
  for (size_t b = 0; b < result.batches.size(); ++b) {
    if (result.batches[b].table >= 0) continue;
    for (uint32_t chunk : result.batches[b].chunks) {
      const v1::ChunkPlacement& placement = job.chunks(static_cast<int>(chunk));
      const int tensor = static_cast<int>(placement.tensor());
      const auto begin = static_cast<int64_t>(placement.offset());
      const auto end = begin + static_cast<int64_t>(placement.length());
      std::vector<PartOfTensor>& parts = result.parts_of_tensor[tensor];
      if (parts.empty() || parts.back().batch != static_cast<int>(b)) {
        parts.push_back({.batch = static_cast<int>(b), .begin = begin, .end = end});
        result.tensors_of_batch[b].push_back(tensor);
      }
      parts.back().begin = std::min(parts.back().begin, begin);
      parts.back().end = std::max(parts.back().end, end);
    }
  }
  return result;
}

}  // namespace rubato::worker
