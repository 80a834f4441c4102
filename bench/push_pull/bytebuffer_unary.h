#ifndef RUBATO_BENCH_PUSH_PULL_BYTEBUFFER_UNARY_H_
#define RUBATO_BENCH_PUSH_PULL_BYTEBUFFER_UNARY_H_

#include <memory>
#include <string>

#include "bench/push_pull/subject.h"

namespace rubato::bench {

// What gRPC can do with a call for each message: as bytebuffer_stream, but for the chunk's number before each payload,
// because calls overtake each other.
absl::Status ServeByteBufferUnary(const Setup& setup, const Ready& ready);
absl::StatusOr<std::unique_ptr<Client>> ConnectByteBufferUnary(const Setup& setup, const std::string& address);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_BYTEBUFFER_UNARY_H_
