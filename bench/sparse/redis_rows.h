#ifndef RUBATO_BENCH_SPARSE_REDIS_ROWS_H_
#define RUBATO_BENCH_SPARSE_REDIS_ROWS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/sparse/redis_server.h"
#include "bench/sparse/row_client.h"

namespace rubato::bench {

// Rows as redis's values: MGET brings them. It has no update of rows, so a push is an MSET, which writes gradients in
// the rows' place. All commands of an exchange are sent before the first answer is read. `server` outlives it.
absl::StatusOr<std::unique_ptr<RowClient>> ConnectRedisRows(const SparseSetup& setup, const RedisServer& server);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_SPARSE_REDIS_ROWS_H_
