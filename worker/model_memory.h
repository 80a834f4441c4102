#ifndef RUBATO_WORKER_MODEL_MEMORY_H_
#define RUBATO_WORKER_MODEL_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "worker/nn/model.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::worker {

// A model's tensors as the parameter client's memory. Where the host reaches the backend's memory, weights are copied
// to their final place, and gradients are sent from where backward wrote them. Otherwise both have a copy in memory of
// the host, which Upload and Download bring to the device and back. Thread-safe as far as the client keeps its promises
// about who uses which tensor when; Upload and Download by the backend's thread.
class ModelMemory : public PsClient::TensorMemory {
 public:
  // Both outlive it. ResourceExhausted: no memory for the copies.
  static absl::StatusOr<ModelMemory> Create(Model* model, Backend* backend, int tensors);

  float* Weights(int tensor, int64_t offset) override { return tensors_[tensor].weights + offset; }
  const float* Gradient(int tensor, int64_t offset) override { return tensors_[tensor].gradient + offset; }

  // Whether there are copies.
  bool is_staged() const { return is_staged_; }
  // Enqueues the copy of a tensor's weights to the device, or of its gradient from it. Internal: the device refused.
  absl::Status Upload(int tensor);
  absl::Status Download(int tensor);

 private:
  struct Tensor {
    float* weights = nullptr;
    float* gradient = nullptr;
    // Where there are copies: what owns them.
    std::shared_ptr<void> weights_copy;
    std::shared_ptr<void> gradient_copy;
  };

  ModelMemory(const Model* model, Backend* backend) : model_(model), backend_(backend) {}

  const Model* model_;
  Backend* backend_;
  bool is_staged_ = false;
  std::vector<Tensor> tensors_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_MODEL_MEMORY_H_
