#include "client/link/tensor_layout.h"

#include <algorithm>

namespace rubato::client {
namespace {

size_t RoundUp(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

// Large tensors begin at a page, so that nobody else writes to a page that a server reads.
size_t AlignmentOf(size_t bytes) { return bytes < (size_t{64} << 10) ? kTensorAlignment : kPageBytes; }

size_t Append(size_t bytes, size_t* end) {
  const size_t begin = RoundUp(*end, AlignmentOf(bytes));
  *end = begin + RoundUp(bytes, kTensorAlignment);
  return begin;
}

}  // namespace

std::string MakeTensorLayout(const std::vector<Model::Tensor>& tensors, TensorLayout* layout) {
  *layout = {};
  uint64_t total = 0;
  for (const Model::Tensor& tensor : tensors) {
    uint64_t elements = 1;
    for (int64_t dimension : tensor.shape) {
      if (dimension < 1) {
        return "tensor " + tensor.name + ": a dimension of " + std::to_string(dimension) + "; 1 or more is allowed";
      }
      if (static_cast<uint64_t>(dimension) > kModelElementsMax / elements) {
        return "tensor " + tensor.name + ": more than 2^40 elements";
      }
      elements *= static_cast<uint64_t>(dimension);
    }
    total += elements;
    if (total > kModelElementsMax) return "the model: more than 2^40 elements up to tensor " + tensor.name;
    layout->tensors.push_back({.elements = elements});
  }
  size_t end = 0;
  for (TensorLayout::Place& place : layout->tensors) place.weights = Append(place.elements * sizeof(float), &end);
  layout->weight_bytes = end = RoundUp(end, kPageBytes);
  for (TensorLayout::Place& place : layout->tensors) place.gradient = Append(place.elements * sizeof(float), &end);
  // There is memory also for a model of tables alone.
  layout->tensor_bytes = std::max(RoundUp(end, kPageBytes), kPageBytes);
  // Of each gradient twice what TOP_K makes of it if it keeps everything, an index with each value, and the rounding
  // of parts.
  layout->total_bytes = layout->tensor_bytes + RoundUp(2 * total * sizeof(float), kPageBytes) +
                        layout->tensors.size() * 2 * kPageBytes + (size_t{1} << 20);
  return "";
}

}  // namespace rubato::client
