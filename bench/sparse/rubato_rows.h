#ifndef RUBATO_BENCH_SPARSE_RUBATO_ROWS_H_
#define RUBATO_BENCH_SPARSE_RUBATO_ROWS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/sparse/row_client.h"

namespace rubato::bench {

// A job of one server and one worker in ASYNC, whose model has the table and the smallest tensor that a model may have:
// that goes in a message of its own in every step, as it would in any job.

// The server's process. Tells `ready` where it is and serves until the worker has gone.
absl::Status ServeRubatoRows(const SparseSetup& setup, const std::function<void(const std::string& address)>& ready);

// A worker's PsClient, driven as by a trainer whose computation takes no time. A step pushes, and asks in the same
// message for the rows of the next step.
absl::StatusOr<std::unique_ptr<RowClient>> ConnectRubatoRows(const SparseSetup& setup, const std::string& address);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_SPARSE_RUBATO_ROWS_H_
