#ifndef RUBATO_WORKER_PS_CLIENT_MODEL_MEMORY_H_
#define RUBATO_WORKER_PS_CLIENT_MODEL_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/nn/replicated_model.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::worker {

// A model's tensors as the parameter client's memory. If it has one replica and the host reaches its memory, weights
// are copied to their final place, and gradients are sent from where backward wrote them. Otherwise both have a copy in
// memory of the host, which Upload and Download bring to the devices and back. Thread-safe as far as the client keeps
// its promises about who uses which tensor when; the rest by the backends' thread.
class ModelMemory : public PsClient::TensorMemory {
 public:
  // The model outlives it. ResourceExhausted: no memory for the copies.
  static absl::StatusOr<ModelMemory> Create(const ReplicatedModel* model);

  float* Weights(int tensor, int64_t offset) override { return tensors_[tensor].weights + offset; }
  float* Gradient(int tensor, int64_t offset) override { return tensors_[tensor].gradient + offset; }

  // Whether there are copies.
  bool is_staged() const { return is_staged_; }
  // Enqueues the copy of a tensor's weights to all devices, or of its gradient from the first. Internal: a device
  // refused.
  absl::Status Upload(int tensor);
  absl::Status Download(int tensor);
  // Waits for all work of all devices. Internal: some of it failed.
  absl::Status Synchronize();

 private:
  struct Tensor {
    float* weights = nullptr;
    float* gradient = nullptr;
    // If there are copies: what owns them.
    std::shared_ptr<void> weights_copy;
    std::shared_ptr<void> gradient_copy;
  };

  explicit ModelMemory(const ReplicatedModel* model) : model_(model) {}

  const ReplicatedModel* model_;
  bool is_staged_ = false;
  std::vector<Tensor> tensors_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_MODEL_MEMORY_H_
