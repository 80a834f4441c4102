#ifndef RUBATO_WORKER_MODEL_MEMORY_H_
#define RUBATO_WORKER_MODEL_MEMORY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "worker/nn/model.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::worker {

// A model's tensors as the parameter client's memory: weights are copied to their final place, gradients are sent from
// where backward wrote them. Thread-safe as far as the client keeps its promises about who uses which tensor when.
class ModelMemory : public PsClient::TensorMemory {
 public:
  // Both outlive it. Unimplemented: the backend's memory is not the host's.
  static absl::StatusOr<ModelMemory> Create(Model* model, const Backend* backend, int tensors);

  float* Weights(int tensor, int64_t offset) override { return tensors_[tensor].weights + offset; }
  const float* Gradient(int tensor, int64_t offset) override { return tensors_[tensor].gradient + offset; }

 private:
  struct Tensor {
    float* weights;
    float* gradient;
  };
  std::vector<Tensor> tensors_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_MODEL_MEMORY_H_
