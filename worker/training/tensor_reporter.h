#ifndef RUBATO_WORKER_TRAINING_TENSOR_REPORTER_H_
#define RUBATO_WORKER_TRAINING_TENSOR_REPORTER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "common/model_spec.h"
#include "kernels/backend.h"
#include "proto/coordinator.pb.h"
#include "worker/nn/model.h"

namespace rubato::worker {

// Describes the weights and gradients of some of a trainer's steps, layer by layer, while both are of that step. Used
// by the trainer's thread.
//
//   reporter.BeginStep(steps_done);
//   if (reporter.describes_step()) RUBATO_RETURN_IF_ERROR(reporter.OnLayer(layer));  // for each layer
//   reporter.EndStep(step);
class TensorReporter {
 public:
  struct Options {
    // Every so many steps, the first one included; 0: never.
    int64_t every_steps = 0;
    const ModelSpec* spec = nullptr;
    const Model* model = nullptr;
    Backend* backend = nullptr;
    // Whether this worker is the one that reports, asked when such a step begins.
    std::function<bool()> is_reporter;
    std::function<void(v1::TensorReport)> send;
  };

  explicit TensorReporter(Options options) : options_(std::move(options)) {}

  // The trainer turns to a step, after `steps_done` others. What was described of one that did not end is forgotten.
  void BeginStep(int64_t steps_done);
  // Whether the step is one of those that are described.
  bool describes_step() const { return describes_step_; }
  // In such a step: a layer's gradients are final, and its weights still those that the step began with. Waits for the
  // device. Errors of the backend.
  absl::Status OnLayer(const LayerSpec& layer);
  // Sends what there is.
  void EndStep(int64_t step);

 private:
  absl::Status Add(int tensor, v1::TensorStatistics::Kind kind, const DeviceTensor& elements);

  const Options options_;
  bool describes_step_ = false;
  v1::TensorReport report_;
  // Where a tensor is copied to, if the host does not reach the device's memory.
  std::vector<float> copy_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_TENSOR_REPORTER_H_
