#ifndef RUBATO_WORKER_PS_CLIENT_BATCHING_H_
#define RUBATO_WORKER_PS_CLIENT_BATCHING_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "proto/coordinator.pb.h"

namespace rubato::worker {

// A group of chunks that always travel in one message: all of one partition, in tensor order.
struct ChunkBatch {
  uint32_t server = 0;
  uint32_t partition = 0;
  std::vector<uint32_t> chunks;
  int64_t bytes = 0;
};

struct Batching {
  // In order of their first tensor, which is the order in which forward needs them.
  std::vector<ChunkBatch> batches;
  // By tensor: the batches that hold a part of it, ascending.
  std::vector<std::vector<int>> batches_of_tensor;
  // By batch: the tensors that it holds parts of, ascending.
  std::vector<std::vector<int>> tensors_of_batch;
};

// A chunk up to this part of message_bytes may travel with chunks of other tensors.
inline constexpr int64_t kSmallPartOfMessage = 16;

// Neighbours in a partition are fused as long as a message stays within `message_bytes` of its server: those of one
// tensor, and those of several where one side is small. A larger chunk travels alone. `tensors`: number of tensors of
// the model. Pure.
Batching MakeBatches(const v1::JobDescription& job, int tensors,
                     const std::function<int64_t(uint32_t server)>& message_bytes);
// The same with one limit for all.
Batching MakeBatches(const v1::JobDescription& job, int tensors, int64_t message_bytes);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_BATCHING_H_
