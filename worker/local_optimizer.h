#ifndef RUBATO_WORKER_LOCAL_OPTIMIZER_H_
#define RUBATO_WORKER_LOCAL_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/device_tensor.h"
#include "proto/job_config.pb.h"
#include "worker/nn/model.h"

namespace rubato::worker {

// Local SGD (Stich 2019) on one worker: updates the model's weights between two exchanges with the servers, and says by
// how much they moved. Optimizer state is kept from step to step and is this worker's alone. Used by the trainer
// thread.
//
//   local->Start(tensor);                                      // Its weights for the step are there.
//   for (...) { ...; local->Update(tensor, epoch, step); }     // After each batch's backward pass.
//   local->WriteDelta(tensor);                                 // The gradient is now what to push.
//
// It computes on the host, where it has copies of weights and gradients that the host does not reach. Internal, from
// all methods: the device failed.
class LocalOptimizer {
 public:
  // `model` and `backend` outlive it. ResourceExhausted: no memory for the optimizer's state, the weights at the step's
  // start, and the state then.
  static absl::StatusOr<std::unique_ptr<LocalOptimizer>> Create(const v1::OptimizerConfig& config, const Model* model,
                                                                Backend* backend);

  // The tensor's weights and state are those that a step starts with.
  absl::Status Start(int tensor);

  // Applies the gradient of one batch; epoch and step are its place in the learning rate's schedule. False: the
  // gradient is not finite, and nothing has changed.
  absl::StatusOr<bool> Update(int tensor, double epoch, int64_t step);

  // The gradient becomes the weights at Start minus those now. Where that is not finite, Restore() follows: the servers
  // refuse what is pushed, and the optimizer's state is as good as before.
  absl::Status WriteDelta(int tensor);

  // Weights and state become those at Start.
  absl::Status Restore(int tensor);

 private:
  // Arrays as long as the tensor, in the host's memory.
  struct Tensor {
    // The device's, where `weights` and `gradient` are copies of them; otherwise empty.
    DeviceTensor device_weights;
    DeviceTensor device_gradient;
    int64_t elements = 0;
    bool decays = false;
    float* weights = nullptr;
    float* gradient = nullptr;
    float* start_weights = nullptr;
    std::vector<float*> slots;
    std::vector<float*> start_slots;
    // Updates so far, and at Start.
    int64_t updates = 0;
    int64_t start_updates = 0;
  };

  LocalOptimizer(const v1::OptimizerConfig& config, Backend* backend) : config_(config), backend_(backend) {}

  absl::Status AddTensor(const TensorSpec& spec, const DeviceTensor& weights, const DeviceTensor& gradient);
  // Zeros, as long as the tensor.
  absl::StatusOr<float*> Allocate(int64_t elements);
  // Where the tensor's elements are for the host, or a copy, with the tensor in *device.
  absl::StatusOr<float*> HostElements(const DeviceTensor& tensor, DeviceTensor* device);
  // Between the copies, where there are any, and the device.
  absl::Status Fetch(const DeviceTensor& device, float* copy);
  absl::Status Send(const DeviceTensor& device, const float* copy);

  const v1::OptimizerConfig config_;
  Backend* const backend_;
  std::vector<std::shared_ptr<void>> memory_;  // Of the arrays that are not the model's.
  std::vector<Tensor> tensors_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_LOCAL_OPTIMIZER_H_
