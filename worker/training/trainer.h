#ifndef RUBATO_WORKER_TRAINING_TRAINER_H_
#define RUBATO_WORKER_TRAINING_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/trace/trace_window.h"
#include "proto/coordinator.pb.h"
#include "worker/training/contribution.h"
#include "worker/training/input_stager.h"
#include "worker/training/row_exchange.h"
#include "worker/training/step_outcome.h"
#include "worker/training/step_work.h"
#include "worker/training/trainer_options.h"
#include "worker/training/trainer_progress.h"

namespace rubato::worker {

// The step loop: waits for weights layer by layer while it computes forward, pushes gradients layer by layer while it
// computes backward. With local SGD a step has several batches: the weights are waited for in the first one, and by how
// much they moved is pushed in the last. If gradients are clipped or scaled, they are pushed after the whole
// backward pass. Run() on one thread; Drain() and Describe() from any.
class Trainer {
 public:
  using Options = TrainerOptions;

  explicit Trainer(const Options& options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Until the source is done. Errors of the parameters, the source and the model; NotFiniteError for a loss or
  // gradient that is not finite if the config says STOP_JOB.
  absl::Status Run();

  // Lets Run() return OK when the step at work, if any, is pushed and acknowledged; it is slowed down no more. From any
  // thread.
  void Drain() {
    drain_ = true;
    if (options_.slowdown != nullptr) options_.slowdown->End();
  }
  // Whether that is why Run() returned. After Run().
  bool drained() const { return drained_; }

  // What this trainer knows for a heartbeat.
  void Describe(v1::WorkerProgress* progress) { progress_.Describe(progress); }

 private:
  using Timed = TrainerProgress::Timed;

  absl::Status RunSteps();
  // The worker begins no further step.
  absl::Status EndSteps();
  absl::StatusOr<StepOutcome> EmptyStep();
  absl::StatusOr<StepOutcome> ComputeStep(const BatchSource::Next& next);
  absl::StatusOr<StepOutcome> ComputeBatch(const LocalBatch& local, StepWork* work);
  // What is added to the step, once and before anything of it is pushed.
  absl::Status Pause();
  // The masks of the micro-batch are those of this stream.
  uint64_t DropoutStream(const StepWork& work, const LocalBatch& local, int64_t micro_batch) const;
  // `first` of its step: waits for weights.
  absl::StatusOr<StepOutcome> Forward(uint64_t dropout_stream, bool first);
  absl::Status EnqueueLoss(int64_t examples);
  // Waits for it; kSkipped if it is not finite.
  absl::StatusOr<StepOutcome> TakeLoss(StepWork* work);
  // Two layers whose gradients are computed in the order of the layers; -1: none.
  struct Swapped {
    int first = -1, second = -1;
  };
  // The first layers that are computed in parts, the ones whose weights the next step needs soonest: so the first one's
  // travel while the second one's gradient is computed (Oh et al., Out-Of-Order BackProp, EuroSys 2022).
  static Swapped FindSwapped(const Options& options);
  // A layer's gradients, in parts if they are pushed so.
  absl::Status BackwardLayer(int layer, bool accumulate, bool final, const StepWork& work);
  // And takes the loss. `final`: the gradients are complete.
  absl::StatusOr<StepOutcome> Backward(const LocalBatch& local, bool accumulate, bool final, StepWork* work);
  // All layers' gradients are there: they are as without loss scaling, and clipped.
  absl::StatusOr<StepOutcome> CompleteGradients(StepWork* work);
  // Has the device copy, beside what it computes, what it is probably to compute next: the batch's micro-batch
  // `number`, or the first one of the next batch, or of the next step.
  void StageAhead(const StepWork& work, const LocalBatch& local, int64_t number);
  absl::StatusOr<StepOutcome> AwaitLayer(const LayerSpec& layer);
  // What the part of the layer needs; with its last one all of the layer's tensors have been awaited.
  absl::StatusOr<StepOutcome> AwaitPart(int layer, int part);
  // Rows of tables, of which nothing happens if the model has none.
  absl::StatusOr<StepOutcome> AwaitRows(const Batch& batch);
  const float* ComposeInputs(const Batch& batch);
  absl::Status PushRows(const StepWork& work);
  absl::StatusOr<StepOutcome> Begin(Parameters::Step* step);
  // `step` is the first of its plan.
  absl::Status EnterPlan(const Parameters::Step& step);

  const Options options_;
  const Swapped swapped_;
  TrainerProgress progress_;
  RowExchange rows_;
  Contribution contribution_;
  InputStager inputs_;
  std::optional<TraceWindow> trace_window_;
  uint64_t generation_ = 0;  // Of the step that was begun last.
  std::atomic<bool> drain_ = false;
  bool drained_ = false;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_TRAINER_H_
