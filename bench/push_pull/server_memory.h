#ifndef RUBATO_BENCH_PUSH_PULL_SERVER_MEMORY_H_
#define RUBATO_BENCH_PUSH_PULL_SERVER_MEMORY_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "bench/push_pull/subject.h"
#include "common/float_buffer.h"

namespace rubato::bench {

// A reference server's weights, zero at first. Not thread-safe but for different chunks.
class ServerMemory {
 public:
  explicit ServerMemory(const Setup& setup) : setup_(setup), weights_(setup.chunks() * setup.floats()) {}

  float* Weights(int64_t chunk) { return weights_.data() + chunk * setup_.floats(); }
  // The chunk's weights, not copied: to be sent before the chunk is next added to.
  grpc::Slice WeightsSlice(int64_t chunk);

  // Adds a message's floats, however it is cut into slices, all but its first `skip` bytes. InvalidArgument when the
  // size is another.
  absl::Status Add(int64_t chunk, const grpc::ByteBuffer& message, size_t skip = 0);

 private:
  const Setup setup_;
  FloatBuffer weights_;
};

// weights[i] += the i-th float at `bytes`, which need not be aligned.
void AddFloats(const void* bytes, int64_t floats, float* weights);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_SERVER_MEMORY_H_
