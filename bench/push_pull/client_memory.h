#ifndef RUBATO_BENCH_PUSH_PULL_CLIENT_MEMORY_H_
#define RUBATO_BENCH_PUSH_PULL_CLIENT_MEMORY_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "bench/push_pull/subject.h"
#include "common/float_buffer.h"

namespace rubato::bench {

// The client's gradients, which never change, and its copy of the weights, chunk by chunk. Not thread-safe but for
// different chunks.
class ClientMemory {
 public:
  struct Options {
    // Of the gradients, 1 or -1; the weights move by their magnitude, always upwards.
    float sign = 1;
    // Where the gradients are, as many as a side cycles through. Null: in memory of their own.
    FloatBuffer::Ptr gradients = nullptr;
  };

  explicit ClientMemory(const Setup& setup) : ClientMemory(setup, Options()) {}
  ClientMemory(const Setup& setup, Options options);

  float* Gradient(int64_t chunk) const { return gradients_->data() + chunk * setup_.floats(); }
  float* Weights(int64_t chunk) { return weights_.data() + chunk * setup_.floats(); }
  // The gradient, not copied.
  grpc::Slice GradientSlice(int64_t chunk) const;

  // The chunk's weights have come, in `message`; counts a round trip. InvalidArgument when the size is another.
  absl::Status Store(int64_t chunk, const grpc::ByteBuffer& message);
  // For weights that are in place.
  void CountTrip(int64_t chunk) { ++trips_[chunk]; }

  // DataLoss when a weight is not the sum of the gradients that were pushed to it.
  absl::Status Verify() const;

 private:
  const Setup setup_;
  const FloatBuffer::Ptr gradients_;
  FloatBuffer weights_;
  std::vector<int64_t> trips_;  // By chunk.
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_PUSH_PULL_CLIENT_MEMORY_H_
