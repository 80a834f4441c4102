#ifndef RUBATO_SERVER_TABLE_MESSAGE_H_
#define RUBATO_SERVER_TABLE_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/byte_span.h"
#include "common/model_spec.h"
#include "common/table_keys.h"
#include "common/wire/payload_view.h"
#include "kernels/optimizer/encoded_gradient.h"
#include "proto/coordinator.pb.h"

namespace rubato::server {

// The gradients of some rows of a table's shard; the rules see the bytes alone. A contribution to a shard has one.
struct RowGradient : EncodedGradient {
  // In order of their hashes, and `dimension` floats for each.
  absl::Span<const uint64_t> keys;
  const float* rows = nullptr;
};

// What a message pushes to a table, and asks of it.
struct TableMessage {
  // Of ModelConfig.tables.
  int table = 0;
  std::vector<uint64_t> pushed, asked;
  std::vector<float> gradients;
  // By chunk of the message, which is a shard. They point into the above.
  std::vector<ByteSpan> pieces;
  std::vector<RowGradient> by_chunk;
};

// What messages about tables are checked against. Null: the job has no tables.
struct TableRules {
  const ModelSpec* model = nullptr;
  uint64_t seed = 0;
};

// The part of a message that TableKeys and its payload are. `chunks` are the message's, all of one partition;
// `with_gradients`: it is a push that has some. InvalidArgument names the field: chunks that are not the table's shards
// in ascending order, keys that are not in the order of their hashes or not of these shards, a payload of another size.
// Pure.
absl::StatusOr<std::shared_ptr<const TableMessage>> ReadTable(const v1::TableKeys& keys, bool with_gradients,
                                                              const std::vector<uint32_t>& chunks,
                                                              const PayloadView& payload, const TableRules& rules,
                                                              const v1::JobDescription& job);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TABLE_MESSAGE_H_
