#ifndef RUBATO_SERVER_TABLE_MESSAGE_H_
#define RUBATO_SERVER_TABLE_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/byte_span.h"
#include "common/model_spec.h"
#include "common/shared_memory/region.h"
#include "common/table_keys.h"
#include "common/wire/exchange_codec.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "proto/coordinator.pb.h"

namespace rubato::server {

// The gradients of some rows of a table's shard; the rules see the bytes alone. A contribution to a shard has one.
struct RowGradient : EncodedGradient {
  // Of their keys, ascending, and `dimension` floats for each.
  absl::Span<const uint64_t> hashes;
  const float* rows = nullptr;
};

// What a message pushes to a table, and asks of it. Keys are hashed once, when they are read, and their hashes stand
// for them from then on.
struct TableMessage {
  // Of ModelConfig.tables.
  int table = 0;
  // Of the keys, ascending.
  absl::Span<const uint64_t> pushed, asked;
  // By chunk of the message, which is a shard.
  std::vector<ByteSpan> pieces;
  std::vector<RowGradient> by_chunk;
  // Of keys and gradients, wherever they came.
  uint64_t bytes = 0;
  // What the above points into. Gradients are where the worker wrote them, in its region, or what the payload, or an
  // encoding of them, decodes to.
  std::unique_ptr<uint64_t[]> hashes;
  std::unique_ptr<float[]> gradients;
  std::shared_ptr<const SharedRegion> region;
};

// What messages about tables are checked against. Null: the job has no tables.
struct TableRules {
  const ModelSpec* model = nullptr;
  uint64_t seed = 0;
};

// What of a message is about a table: `keys`, and what they say is in the payload. Or it is in the worker's shared
// memory, `region`, which is not null then: header.shared has two entries, what is pushed (keys, then gradients) and
// the keys that are asked for, each at a multiple of 8. `chunks` are the message's, all of one partition;
// `with_gradients`: it is a push that has some. InvalidArgument names the field: chunks that are not the table's shards
// in ascending order, keys that are not in the order of their hashes or not of these shards, a payload of another size,
// spans of another size or outside of the region. What is in shared memory is read once, but for the gradients. Pure.
absl::StatusOr<std::shared_ptr<const TableMessage>> ReadTable(const v1::TableKeys& keys, bool with_gradients,
                                                              const std::vector<uint32_t>& chunks,
                                                              const DecodedRequest& message,
                                                              std::shared_ptr<const SharedRegion> region,
                                                              const TableRules& rules, const v1::JobDescription& job);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLE_MESSAGE_H_
