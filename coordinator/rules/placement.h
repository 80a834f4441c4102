#ifndef RUBATO_COORDINATOR_RULES_PLACEMENT_H_
#define RUBATO_COORDINATOR_RULES_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "proto/coordinator.pb.h"

namespace rubato::coordinator {

// Cuts the model's tensors into chunks of at most `chunk_bytes` bytes of float32: tensors in model order, offsets
// ascending. A tensor that needs several chunks is cut into nearly equal parts at multiples of 16 elements, so that
// each part starts at a cache line. After them come the shards of the model's tables, without a length. The result
// depends on the arguments alone, never on the number of servers. Server and partition are left 0. InvalidArgument when
// chunk_bytes is below 64, a tensor has no elements, or there are more than 2^31 - 1 chunks.
absl::StatusOr<std::vector<v1::ChunkPlacement>> SplitIntoChunks(const ModelSpec& model, uint64_t chunk_bytes);

// Gives every chunk a server and a partition: the largest chunk first, each to the place with the fewest bytes so far
// (Graham 1969, "longest processing time first"). Places are tried server by server before partition by partition, so
// that few chunks spread over servers first. Shards of tables, which grow alike, are dealt to all places in turn.
// Deterministic. `servers` are indices; there is at least one, and one
// partition.
void PlaceChunks(const std::vector<uint32_t>& servers, uint32_t partitions_per_server,
                 std::vector<v1::ChunkPlacement>* chunks);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_PLACEMENT_H_
