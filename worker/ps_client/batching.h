#ifndef RUBATO_WORKER_PS_CLIENT_BATCHING_H_
#define RUBATO_WORKER_PS_CLIENT_BATCHING_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "proto/coordinator.pb.h"

namespace rubato::worker {

// A group of chunks that always travel in one message: all of one partition, in tensor order; or all of a partition's
// shards of one table.
struct ChunkBatch {
  uint32_t server = 0;
  uint32_t partition = 0;
  std::vector<uint32_t> chunks;
  int64_t bytes = 0;
  // Of the model; -1: of tensors.
  int table = -1;
};

// What a batch holds of a tensor: nothing that is before element `begin` of it, or from `end` on.
struct PartOfTensor {
  int batch = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

struct Batching {
  // In order of their first tensor, which is the order in which forward needs them; then those of tables.
  std::vector<ChunkBatch> batches;
  // By tensor: the batches that hold a part of it, ascending.
  std::vector<std::vector<PartOfTensor>> parts_of_tensor;
  // By batch: the tensors that it holds parts of, ascending.
  std::vector<std::vector<int>> tensors_of_batch;
  // By table, and by shard of it: the batch that it is in.
  std::vector<std::vector<int>> batch_of_shard;
};

// A chunk up to this part of message_bytes may travel with chunks of other tensors.
inline constexpr int64_t kSmallPartOfMessage = 16;
// A message to a server that reads tensors where they are says only where that is, and costs the same however large
// they are: it may hold so many times message_bytes.
inline constexpr int64_t kMessagesInPlace = 4;

// Neighbours in a partition are fused as long as a message stays within `message_bytes`, or kMessagesInPlace times that
// to servers of which `reads_in_place` is true: those of one tensor, and those of several if one side is small. A
// larger chunk travels alone. `tensors`: number of tensors of the model, behind which its tables are numbered. Pure.
Batching MakeBatches(
    const v1::JobDescription& job, int tensors, int64_t message_bytes,
    const std::function<bool(uint32_t server)>& reads_in_place = [](uint32_t) { return false; });

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_BATCHING_H_
