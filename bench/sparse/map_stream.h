#ifndef RUBATO_BENCH_SPARSE_MAP_STREAM_H_
#define RUBATO_BENCH_SPARSE_MAP_STREAM_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/sparse/row_client.h"

namespace rubato::bench {

// MapRows behind one bidirectional gRPC stream of ByteBuffers, one thread on one completion queue a side. A request is
// two uint64, how many keys are pushed and asked for, then the pushed keys, their gradients and the keys that are asked
// for; an answer is the rows.
absl::Status ServeMapStream(const SparseSetup& setup, bool prefetches,
                            const std::function<void(const std::string& address)>& ready);
absl::StatusOr<std::unique_ptr<RowClient>> ConnectMapStream(const SparseSetup& setup, const std::string& address);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_SPARSE_MAP_STREAM_H_
