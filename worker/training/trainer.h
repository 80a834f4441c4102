#ifndef RUBATO_WORKER_TRAINING_TRAINER_H_
#define RUBATO_WORKER_TRAINING_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/trace/trace_recorder.h"
#include "common/trace/trace_window.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/device/step_watchdog.h"
#include "worker/nn/replicated_model.h"
#include "worker/ps_client/parameters.h"
#include "worker/training/batch_source.h"
#include "worker/training/local_optimizer.h"
#include "worker/training/loss_scaler.h"
#include "worker/training/tensor_reporter.h"
#include "worker/training/trainer_progress.h"

namespace rubato::worker {

// The step loop: waits for weights layer by layer while it computes forward, pushes gradients layer by layer while it
// computes backward. With local SGD a step has several batches: the weights are waited for in the first one, and by how
// much they moved is pushed in the last. Where gradients are clipped or scaled, they are pushed after the whole
// backward pass. Run() on one thread; Drain() and Describe() from any.
class Trainer {
 public:
  struct Options {
    const v1::JobConfig* config = nullptr;
    const ModelSpec* spec = nullptr;
    ReplicatedModel* model = nullptr;
    Parameters* parameters = nullptr;
    BatchSource* source = nullptr;
    // Local SGD. Null where a step is one batch.
    LocalOptimizer* local = nullptr;
    uint32_t worker = 0;
    // Every computation takes this many times its processor time: 1 for full speed. The rest is slept.
    double slow_factor = 1;
    Clock* clock = nullptr;
    Logger* log = nullptr;
    // May be null. Where the config asks for a trace, the trainer enables it for the steps in question and writes its
    // file.
    TraceRecorder* trace = nullptr;
    // The device rounds to binary16, so the loss is scaled as training.loss_scale says.
    bool scales_loss = false;
    // Is told when the device is waited for. May be null.
    StepWatchdog* watchdog = nullptr;
    // Describes the tensors of some steps. May be null.
    TensorReporter* tensors = nullptr;
  };

  explicit Trainer(const Options& options);

  // Until the source is done. Errors of the parameters, the source and the model; NotFiniteError for a loss or
  // gradient that is not finite where the config says STOP_JOB.
  absl::Status Run();

  // Lets Run() return OK when the step at work, if any, is pushed and acknowledged. From any thread.
  void Drain() { drain_ = true; }
  // Whether that is why Run() returned. After Run().
  bool drained() const { return drained_; }

  // What this trainer knows for a heartbeat.
  void Describe(v1::WorkerProgress* progress) { progress_.Describe(progress); }

 private:
  using Timed = TrainerProgress::Timed;
  // kSkipped: empty contributions have been pushed instead, because something was not finite.
  enum class Outcome { kStepDone, kMoved, kSkipped };
  // A batch of a step: some of its examples.
  struct LocalBatch {
    int64_t number;  // Counted from 0.
    int64_t begin;
    int64_t examples;
    int64_t pieces;
    bool last;
    // Its position in epochs.
    double epoch = 0;
  };
  // Examples that are computed at once: a micro-batch.
  struct Piece {
    int64_t begin;
    int64_t count;
  };
  // A step that is being computed.
  struct Work {
    const BatchSource::Next* next;
    Parameters::Step step;
    std::vector<LocalBatch> batches;
    double loss = 0;
    double correct = 0;
  };

  // What the device has been given ahead: a piece of the examples [batch_begin, batch_end) of an epoch. They alone say
  // what a batch holds.
  struct Staged {
    int64_t epoch = -1;
    int64_t batch_begin = 0;
    int64_t batch_end = 0;
    Piece piece = {};
  };

  absl::Status RunSteps();
  // The worker begins no further step.
  absl::Status EndSteps();
  absl::StatusOr<Outcome> EmptyStep();
  // Of a step with so many examples, at least one.
  std::vector<LocalBatch> BatchesOf(int64_t examples) const;
  static Piece PieceOf(const LocalBatch& local, int64_t number);
  absl::StatusOr<Outcome> ComputeStep(const BatchSource::Next& next);
  absl::StatusOr<Outcome> ComputeBatch(const LocalBatch& local, Work* work);
  absl::Status EnqueueLoss(int64_t examples);
  // Waits for it. False: it is not finite, and the step was skipped.
  absl::StatusOr<bool> TakeLoss(Work* work);
  // Copies the piece to the device, unless that has been done ahead, and begins it.
  absl::Status BeginPiece(const Batch& batch, const Piece& piece);
  // Has the device copy, beside what it computes, what it is probably to compute next: piece `number` of the batch, or
  // the first one of the next batch, or of the next step.
  void StageAhead(const Work& work, const LocalBatch& local, int64_t number);
  absl::Status Stage(const Batch& batch, const Piece& piece);
  // Forward of what BeginPiece began. `first` of its step: waits for weights; false when the step was moved.
  absl::StatusOr<bool> Forward(uint64_t dropout_stream, bool first);
  // And takes the loss. `final`: the gradients are complete. False: the step was skipped.
  absl::StatusOr<bool> Backward(const LocalBatch& local, bool accumulate, bool final, Work* work);
  // All layers' gradients are there: they are as without loss scaling, and clipped. False: the step was skipped.
  absl::StatusOr<bool> CompleteGradients(Work* work);
  absl::StatusOr<bool> UnscaleGradients(Work* work);
  // A layer's gradients are final: they are applied to the local weights, pushed, or both. False: the step was skipped.
  absl::StatusOr<bool> FinishLayer(const LayerSpec& layer, const LocalBatch& local, const Work& work);
  absl::StatusOr<bool> UpdateLayer(const LayerSpec& layer, const LocalBatch& local, const Work& work);
  absl::StatusOr<bool> AwaitLayer(const LayerSpec& layer);
  absl::StatusOr<bool> Begin(Parameters::Step* step);
  void PushLayer(const LayerSpec& layer, uint64_t examples, double epoch);
  void PushAllEmpty(double epoch);
  // Where `what` is not finite before anything of the step was pushed: contributes nothing, or stops the job.
  absl::Status SkipStep(const Work& work, absl::string_view what);
  // Gradients are not finite where the loss is scaled: contributes nothing, and scales less.
  absl::Status SkipOverflow(const Work& work);
  absl::Status ContributeNothing(const Work& work);
  // "worker 1, step 5"
  std::string Place(const Work& work) const;
  void DescribeScale();

  const Options options_;
  TrainerProgress progress_;
  std::optional<TraceWindow> trace_window_;
  // Where the loss is scaled.
  std::optional<LossScaler> scaler_;
  Staged staged_;  // Of no epoch: nothing.
  std::atomic<bool> drain_ = false;
  bool drained_ = false;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_TRAINER_H_
