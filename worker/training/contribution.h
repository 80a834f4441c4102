#ifndef RUBATO_WORKER_TRAINING_CONTRIBUTION_H_
#define RUBATO_WORKER_TRAINING_CONTRIBUTION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model_spec.h"
#include "worker/training/row_exchange.h"
#include "worker/training/step_outcome.h"
#include "worker/training/step_work.h"
#include "worker/training/trainer_options.h"
#include "worker/training/trainer_progress.h"

namespace rubato::worker {

// What a worker contributes to its steps: gradients as backward leaves them, or unscaled and clipped, or by how much
// local SGD moved the weights, or, if something is not finite, nothing. Used by the trainer's thread.
//
//   // Backward, from the last layer to the first; or after it, if needs_all_gradients().
//   RUBATO_RETURN_UNLESS_COMPLETE(contribution.FinishLayer(layer, local, work));
class Contribution {
 public:
  // All outlive it.
  Contribution(const TrainerOptions* options, TrainerProgress* progress, RowExchange* rows);

  // What the loss is multiplied by; 1 if it is not scaled.
  float loss_scale() const { return options_.scaler != nullptr ? options_.scaler->scale() : 1; }
  bool scales_loss() const { return options_.scaler != nullptr; }
  // Whether something is done to a batch's gradients that needs all of them.
  bool needs_all_gradients() const;

  // Whether gradients go as backward leaves them, so that a layer's first elements may go before the others are there.
  bool pushes_parts() const;

  // If the loss is scaled, and all gradients are there: they are as without it from now on; whether all are finite.
  // Waits for the device.
  absl::StatusOr<bool> Unscale();
  // Follows Unscale with what it returned: adjusts the scale. kSkipped if gradients were not finite.
  absl::StatusOr<StepOutcome> AdjustScale(bool finite, const StepWork& work);
  // All gradients are there: clips them if the config asks for it.
  absl::Status Clip();
  // A layer's gradients are final: they are applied to the local weights, pushed, or both.
  absl::StatusOr<StepOutcome> FinishLayer(const LayerSpec& layer, const LocalBatch& local, const StepWork& work);

  // The layer's first tensor is final as far as its first `elements`; FinishLayer follows. REQUIRES: pushes_parts().
  void PushElements(const LayerSpec& layer, int64_t elements, const StepWork& work);

  // The gradients of rows of tables, of which `input_gradient` [examples, input] consists.
  void PushRows(const float* input_gradient, const StepWork& work);

  // If `what` is not finite before anything of the step was pushed: contributes nothing and returns kSkipped, or
  // NotFiniteError as the config says.
  absl::StatusOr<StepOutcome> Skip(const StepWork& work, absl::string_view what);
  // An empty gradient of every tensor, of a step without a batch.
  void PushNothing() { PushNothing({}); }

 private:
  absl::StatusOr<StepOutcome> UpdateLayer(const LayerSpec& layer, const LocalBatch& local, const StepWork& work);
  void PushLayer(const LayerSpec& layer, const Parameters::Pushed& pushed);
  void PushNothing(Parameters::Pushed pushed);
  // Gradients overflow if the loss is scaled.
  absl::StatusOr<StepOutcome> SkipOverflow(const StepWork& work);
  // And the local weights are as they were when the step began.
  absl::Status ContributeNothing(const StepWork& work);
  // "worker 1, step 5"
  std::string Place(const StepWork& work) const;
  void DescribeScale();

  const TrainerOptions& options_;
  TrainerProgress* const progress_;
  RowExchange* const rows_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_CONTRIBUTION_H_
