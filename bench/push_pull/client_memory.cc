#include "bench/push_pull/client_memory.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace rubato::bench {
namespace {

// A small whole number, so that sums of millions of them are exact in float32.
float Magnitude(int64_t chunk, int64_t element) { return static_cast<float>(1 + (chunk + element) % 7); }

}  // namespace

ClientMemory::ClientMemory(const Setup& setup, Options options)
    : setup_(setup),
      gradients_(options.gradients != nullptr ? options.gradients
                                              : FloatBuffer::Allocate(setup.chunks() * setup.floats())),
      weights_(setup.chunks() * setup.floats()),
      trips_(setup.chunks(), 0) {
  for (int64_t chunk = 0; chunk < setup.chunks(); ++chunk) {
    float* gradient = gradients_->data() + chunk * setup.floats();
    for (int64_t i = 0; i < setup.floats(); ++i) gradient[i] = options.sign * Magnitude(chunk, i);
  }
}

grpc::Slice ClientMemory::GradientSlice(int64_t chunk) const {
  return grpc::Slice(Gradient(chunk), setup_.size, grpc::Slice::STATIC_SLICE);
}

absl::Status ClientMemory::Store(int64_t chunk, const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok() || message.Length() != static_cast<size_t>(setup_.size)) {
    return absl::InvalidArgumentError(absl::StrCat("weights: ", message.Length(), " bytes; a chunk has ", setup_.size));
  }
  char* to = reinterpret_cast<char*>(Weights(chunk));
  for (const grpc::Slice& slice : slices) {
    std::memcpy(to, slice.begin(), slice.size());
    to += slice.size();
  }
  CountTrip(chunk);
  return absl::OkStatus();
}

absl::Status ClientMemory::Verify() const {
  for (int64_t chunk = 0; chunk < setup_.chunks(); ++chunk) {
    const float* weights = weights_.data() + chunk * setup_.floats();
    for (int64_t i = 0; i < setup_.floats(); ++i) {
      const float expected = static_cast<float>(trips_[chunk]) * Magnitude(chunk, i);
      if (weights[i] == expected) continue;
      return absl::DataLossError(absl::StrCat("chunk ", chunk, ", element ", i, ": ", weights[i], " after ",
                                              trips_[chunk], " pushes; expected ", expected));
    }
  }
  return absl::OkStatus();
}

}  // namespace rubato::bench
