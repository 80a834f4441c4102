#ifndef RUBATO_WORKER_PS_CLIENT_ARRIVED_ROWS_H_
#define RUBATO_WORKER_PS_CLIENT_ARRIVED_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/shared_memory/region.h"
#include "common/wire/exchange_codec.h"
#include "worker/ps_client/batching.h"
#include "worker/ps_client/table_parts.h"

namespace rubato::worker {

// The rows of a table in an answer, one after another, as a server sent them.
struct ArrivedRows {
  // In the server's shared memory; null: in the payload.
  const uint8_t* shared = nullptr;
  PayloadView payload;

  // Writes `count` of the table's rows from the `begin`-th on. REQUIRES: FindRows has found so many.
  void Decode(const TableParts& table, size_t begin, size_t count, float* out) const;
};

// What a row takes in an answer.
size_t AnsweredRowBytes(const TableParts& table);

// Checks an OK answer against the batch of shards that it is for, and finds the `count` rows of `row_bytes` bytes that
// were asked for: in the payload, or where the one entry of header.shared says. `region` is the server's shared memory,
// null if there is none. InvalidArgument names the field. Pure.
absl::StatusOr<ArrivedRows> FindRows(const ChunkBatch& batch, const DecodedReply& reply, size_t count, size_t row_bytes,
                                     const SharedRegion* region);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_ARRIVED_ROWS_H_
