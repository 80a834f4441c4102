#ifndef RUBATO_BENCH_PUSH_PULL_SOCKETS_H_
#define RUBATO_BENCH_PUSH_PULL_SOCKETS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/push_pull/subject.h"

namespace rubato::bench {

// Listens on loopback, tells `ready`, and returns the first connection's descriptor, which the caller owns. It has
// TCP_NODELAY and the setup's congestion control.
absl::StatusOr<int> AcceptOne(const Setup& setup, const Ready& ready);

// The other end. `address` is what `ready` was told.
absl::StatusOr<int> ConnectTo(const Setup& setup, const std::string& address);

absl::Status SetNonBlocking(int descriptor);

// Of the last system call: "<what>: <errno's text>".
absl::Status SystemError(const std::string& what);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_SOCKETS_H_
