#ifndef RUBATO_CLIENT_LINK_TENSOR_LAYOUT_H_
#define RUBATO_CLIENT_LINK_TENSOR_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/link/model.h"

namespace rubato::client {

// Where a model's tensors are in the memory that library and sidecar share: all weights, then all gradients, each at a
// multiple of kTensorAlignment. What follows is the sidecar's, for what it sends in the place of gradients. Both sides
// compute it from the model.
struct TensorLayout {
  struct Place {
    size_t elements = 0;
    // Bytes from the memory's beginning.
    size_t weights = 0;
    size_t gradient = 0;
  };

  // By tensor.
  std::vector<Place> tensors;
  // Of weights, of these and gradients, and of all; whole pages. Pages that nobody touches take up no memory.
  size_t weight_bytes = 0;
  size_t tensor_bytes = 0;
  size_t total_bytes = 0;
};

inline constexpr size_t kTensorAlignment = 64;
inline constexpr size_t kPageBytes = 4096;
// Of weights, in all tensors together.
inline constexpr uint64_t kModelElementsMax = uint64_t{1} << 40;

// What is wrong with a tensor's shape, with its name, or that the model is too large; empty: `layout` is filled in.
// Pure.
std::string MakeTensorLayout(const std::vector<Model::Tensor>& tensors, TensorLayout* layout);

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LINK_TENSOR_LAYOUT_H_
