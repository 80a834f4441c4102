#ifndef RUBATO_BENCH_PUSH_PULL_BYTEBUFFER_STREAM_H_
#define RUBATO_BENCH_PUSH_PULL_BYTEBUFFER_STREAM_H_

#include <memory>
#include <string>

#include "bench/push_pull/subject.h"

namespace rubato::bench {

// What gRPC can do with one bidirectional stream: payloads as ByteBuffers, sent straight from memory, one thread on one
// completion queue a side.
absl::Status ServeByteBufferStream(const Setup& setup, const Ready& ready);
absl::StatusOr<std::unique_ptr<Client>> ConnectByteBufferStream(const Setup& setup, const std::string& address);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_BYTEBUFFER_STREAM_H_
