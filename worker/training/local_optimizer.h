#ifndef RUBATO_WORKER_TRAINING_LOCAL_OPTIMIZER_H_
#define RUBATO_WORKER_TRAINING_LOCAL_OPTIMIZER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
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
//   for (...) { ...; local->Update(tensor, {...}); }           // After each batch's backward pass.
//   local->WriteDelta(tensor);                                 // The gradient is now what to push.
//
// Everything is kept and computed on the device. The host learns whether gradients are finite, and what is to be pushed
// where: Update and WriteDelta wait for the device, Start and Restore are enqueued. Internal, from all methods: the
// device failed.
class LocalOptimizer {
 public:
  // `model` and `backend` outlive it. ResourceExhausted: the device has no memory for the optimizer's state, the
  // weights at the step's start, and the state then.
  static absl::StatusOr<std::unique_ptr<LocalOptimizer>> Create(const v1::OptimizerConfig& config, const Model* model,
                                                                Backend* backend);

  // The tensor's weights and state are those that a step starts with.
  absl::Status Start(int tensor);

  // What a batch's update depends on beside its gradient.
  struct Place {
    // Its place in the schedule.
    double epoch = 0;
    int64_t step = 0;
    // The plan's factor: the servers apply it only to gradients.
    double learning_rate_scale = 1;
    // The plan's; absent: the optimizer's.
    std::optional<double> momentum = std::nullopt;
  };

  // Applies the gradient of one batch. False: the gradient is not finite, and nothing has changed.
  absl::StatusOr<bool> Update(int tensor, const Place& place);

  // The gradient becomes the weights at Start minus those now. If that is not finite, Restore() follows: the servers
  // refuse what is pushed, and the optimizer's state is as good as before.
  absl::Status WriteDelta(int tensor);

  // Weights and state become those at Start.
  absl::Status Restore(int tensor);

  // The state that is kept from step to step, between two steps or before the first Update of one. FetchSlot brings
  // elements [offset, offset + count) of a slot, 0 to slots() - 1, to the host, and SetSlot brings them back for the
  // steps to come. Both are enqueued: the host's memory is used until the device is synchronized.
  int slots() const { return slots_; }
  absl::Status FetchSlot(int tensor, int slot, int64_t offset, int64_t count, float* to);
  absl::Status SetSlot(int tensor, int slot, int64_t offset, int64_t count, const float* from);
  int64_t updates(int tensor) const { return tensors_[tensor].updates; }
  void set_updates(int tensor, int64_t updates) { tensors_[tensor].updates = updates; }

 private:
  // As many as the algorithm has; the others are empty.
  using Slots = std::array<DeviceTensor, 2>;

  // Arrays on the device, all of one shape.
  struct Tensor {
    // The model's.
    DeviceTensor weights;
    DeviceTensor gradient;
    bool decays = false;
    DeviceTensor start_weights;
    Slots slots;
    Slots start_slots;
    // Updates so far, and at Start.
    int64_t updates = 0;
    int64_t start_updates = 0;
  };

  LocalOptimizer(const v1::OptimizerConfig& config, Backend* backend);

  absl::Status AddTensor(const TensorSpec& spec, const DeviceTensor& weights, const DeviceTensor& gradient);
  absl::Status CopySlots(const Slots& from, const Slots& to);
  // Waits for the device.
  absl::StatusOr<bool> IsFinite(const DeviceTensor& tensor);

  const v1::OptimizerConfig config_;
  Backend* const backend_;
  const int slots_;
  std::vector<Tensor> tensors_;
  // Their sum (float64 [1]), of the tensor that IsFinite looks at; and on the host, from the first time on: a backend
  // that only plans has no such memory.
  DeviceTensor squares_;
  std::shared_ptr<void> host_squares_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_LOCAL_OPTIMIZER_H_
