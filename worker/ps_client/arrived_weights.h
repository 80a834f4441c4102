#ifndef RUBATO_WORKER_PS_CLIENT_ARRIVED_WEIGHTS_H_
#define RUBATO_WORKER_PS_CLIENT_ARRIVED_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/shared_memory/region.h"
#include "common/wire/exchange_codec.h"
#include "proto/coordinator.pb.h"
#include "worker/ps_client/batching.h"

namespace rubato::worker {

// The weights of one chunk as a server sent them.
struct ArrivedWeights {
  v1::Codec codec = v1::NONE;
  uint64_t bytes = 0;
  // In the server's shared memory; null: in the payload, from `offset` on.
  const uint8_t* shared = nullptr;
  uint64_t offset = 0;
  PayloadView payload;
};

// Checks an OK answer against the batch that it is for and finds its weights, chunk by chunk. `region` is the server's
// shared memory, null if there is none. InvalidArgument names the field. Pure.
absl::StatusOr<std::vector<ArrivedWeights>> FindWeights(const v1::JobDescription& job, const ChunkBatch& batch,
                                                        const DecodedReply& reply, const SharedRegion* region);

// Writes them to their place, `length` elements at `out`: one copy, past the caches if it is of a large model's weights
// in shared memory. InvalidArgument: the bytes are not what the codec allows.
absl::Status DecodeWeights(const ArrivedWeights& weights, int64_t length, bool is_large_model, float* out);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_ARRIVED_WEIGHTS_H_
