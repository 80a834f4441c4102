#ifndef RUBATO_CLIENT_LIBRARY_TENSOR_MEMORY_H_
#define RUBATO_CLIENT_LIBRARY_TENSOR_MEMORY_H_

#include <memory>
#include <string>

#include "client/link/tensor_layout.h"

namespace rubato::client {

// A model's weights and gradients, in memory without a name that the sidecar maps too.
// Thread-safe but for KeepWeights and CloseDescriptor.
class TensorMemory {
 public:
  // Zeros. Null, and what went wrong.
  static std::unique_ptr<TensorMemory> Create(TensorLayout layout, std::string* error);
  ~TensorMemory();
  // Weights stay where they are without this object, until FreeWeights.
  void KeepWeights() { keeps_weights_ = true; }
  // Of a memory that is gone, with keep_weights: what Weights(0) has returned. Thread-safe.
  static void FreeWeights(const float* weights);
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  // Null: there is no such tensor.
  float* Weights(uint32_t tensor) const;
  float* Gradient(uint32_t tensor) const;
  // Of a tensor that is there.
  size_t Bytes(uint32_t tensor) const { return layout_.tensors[tensor].elements * sizeof(float); }
  // For the sidecar, until CloseDescriptor.
  int descriptor() const { return descriptor_; }
  void CloseDescriptor();

 private:
  TensorMemory(TensorLayout layout, int descriptor, char* data)
      : layout_(std::move(layout)), descriptor_(descriptor), data_(data) {}

  const TensorLayout layout_;
  bool keeps_weights_ = false;
  int descriptor_;
  char* const data_;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_LIBRARY_TENSOR_MEMORY_H_
