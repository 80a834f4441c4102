#include "bench/push_pull/server_memory.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rubato::bench {
namespace {

// Adds floats that come in pieces, cut anywhere.
class PieceAdder {
 public:
  explicit PieceAdder(float* weights) : weights_(weights) {}

  void Add(const uint8_t* bytes, size_t size) {
    if (cut_bytes_ > 0) {
      const size_t missing = std::min(sizeof(float) - cut_bytes_, size);
      std::memcpy(cut_ + cut_bytes_, bytes, missing);
      cut_bytes_ += missing;
      bytes += missing;
      size -= missing;
      if (cut_bytes_ < sizeof(float)) return;
      AddFloats(cut_, 1, weights_++);
    }
    const size_t whole = size / sizeof(float);
    AddFloats(bytes, static_cast<int64_t>(whole), weights_);
    weights_ += whole;
    cut_bytes_ = size - whole * sizeof(float);
    std::memcpy(cut_, bytes + whole * sizeof(float), cut_bytes_);
  }

 private:
  float* weights_;
  // A float of which only the first bytes have come.
  uint8_t cut_[sizeof(float)];
  size_t cut_bytes_ = 0;
};

}  // namespace

void AddFloats(const void* bytes, int64_t floats, float* __restrict weights) {
  const char* __restrict from = static_cast<const char*>(bytes);
  for (int64_t i = 0; i < floats; ++i) {
    float gradient;
    std::memcpy(&gradient, from + i * sizeof(float), sizeof(float));
    weights[i] += gradient;
  }
}

grpc::Slice ServerMemory::WeightsSlice(int64_t chunk) {
  return grpc::Slice(Weights(chunk), setup_.size, grpc::Slice::STATIC_SLICE);
}

absl::Status ServerMemory::Add(int64_t chunk, const grpc::ByteBuffer& message, size_t skip) {
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok() || message.Length() != static_cast<size_t>(setup_.size) + skip) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient: ", message.Length() - skip, " bytes; a chunk has ", setup_.size));
  }
  PieceAdder adder(Weights(chunk));
  for (const grpc::Slice& slice : slices) {
    const size_t skipped = std::min(skip, slice.size());
    skip -= skipped;
    adder.Add(slice.begin() + skipped, slice.size() - skipped);
  }
  return absl::OkStatus();
}

}  // namespace rubato::bench
