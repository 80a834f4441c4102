#include "worker/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/status.h"
#include "common/task.h"
#include "worker/ps_client/not_finite.h"

namespace rubato::worker {
namespace {

using Activity = TrainerProgress::Activity;
using Phase = TrainerProgress::Phase;

constexpr Activity kNextBatch(Phase::kData, "next batch");
constexpr Activity kInputs(Phase::kData, "inputs");
constexpr Activity kAwait(Phase::kPullWait, "await");
constexpr Activity kBeginStep(Phase::kPullWait, "begin step");
constexpr Activity kForward(Phase::kCompute, "forward");
constexpr Activity kLoss(Phase::kCompute, "loss");
constexpr Activity kAwaitLoss(Phase::kCompute, "await loss");
constexpr Activity kBackward(Phase::kCompute, "backward");
constexpr Activity kClip(Phase::kCompute, "clip");
constexpr Activity kUnscale(Phase::kCompute, "unscale");
constexpr Activity kDescribe(Phase::kCompute, "describe");
constexpr Activity kUpdate(Phase::kCompute, "update");
constexpr Activity kPush(Phase::kPush, "push");

// Makes the work in its scope take `factor` times its processor time.
class SlowedDown {
 public:
  SlowedDown(Clock* clock, double factor) : clock_(clock), factor_(factor) {
    if (factor_ > 1) begin_ = ThreadCpuTime();
  }
  ~SlowedDown() {
    if (factor_ > 1) clock_->Sleep((ThreadCpuTime() - begin_) * (factor_ - 1));
  }

 private:
  Clock* const clock_;
  const double factor_;
  absl::Duration begin_;
};

}  // namespace

Trainer::Trainer(const Options& options)
    : options_(options), progress_(options.clock, options.trace, options.watchdog) {
  if (options_.scales_loss) {
    scaler_.emplace(options_.config->training().loss_scale());
    DescribeScale();
  }
  if (options_.trace == nullptr) return;
  trace_window_.emplace(TraceWindow::Options{.recorder = options_.trace,
                                             .steps = options_.config->training().trace_steps(),
                                             .after = options_.config->training().trace_after_steps(),
                                             .directory = absl::StrCat(options_.config->run_directory(), "/traces"),
                                             .file = absl::StrCat("worker-", options_.worker, ".json"),
                                             .log = options_.log});
}

absl::Status Trainer::Run() {
  absl::Status status = RunSteps();
  if (trace_window_.has_value()) trace_window_->Finish();
  return status;
}

absl::Status Trainer::EndSteps() {
  RUBATO_RETURN_IF_ERROR(options_.parameters->AwaitAcknowledgements());
  options_.source->Stopped();
  return absl::OkStatus();
}

absl::Status Trainer::RunSteps() {
  for (;;) {
    if (drain_) {
      drained_ = true;
      return EndSteps();
    }
    if (trace_window_.has_value()) trace_window_->BeginStep(progress_.steps_total());
    const Parameters::Step step = options_.parameters->next_step();
    progress_.BeginStep(step.step);
    if (options_.tensors != nullptr) options_.tensors->BeginStep(progress_.steps_total());
    BatchSource::Next next;
    {
      Timed timed(&progress_, kNextBatch);
      RUBATO_ASSIGN_OR_RETURN(next, options_.source->Get(step));
    }
    if (next.kind == BatchSource::Kind::kDone) return EndSteps();
    absl::StatusOr<Outcome> outcome = next.kind == BatchSource::Kind::kEmpty ? EmptyStep() : ComputeStep(next);
    RUBATO_RETURN_IF_ERROR(outcome.status());
    if (*outcome == Outcome::kMoved) {
      options_.parameters->Restart();
    } else {
      progress_.EndStep();
      if (options_.tensors != nullptr && *outcome == Outcome::kStepDone) options_.tensors->EndStep(step.step);
    }
  }
}

absl::StatusOr<bool> Trainer::AwaitLayer(const LayerSpec& layer) {
  if (layer.tensors.empty()) return true;
  Timed timed(&progress_, kAwait, layer.name);
  for (int tensor : layer.tensors) {
    RUBATO_ASSIGN_OR_RETURN(bool there, options_.parameters->AwaitTensor(tensor));
    if (!there) return false;
  }
  return true;
}

absl::StatusOr<bool> Trainer::Begin(Parameters::Step* step) {
  Timed timed(&progress_, kBeginStep);
  RUBATO_ASSIGN_OR_RETURN(bool begun, options_.parameters->BeginStep(step));
  if (!begun) return false;
  options_.source->Begun();
  progress_.EnterStep(step->step, step->generation);
  options_.log->SetPosition(step->generation, step->step);
  return true;
}

absl::StatusOr<Trainer::Outcome> Trainer::EmptyStep() {
  for (const LayerSpec& layer : options_.spec->layers) {
    RUBATO_ASSIGN_OR_RETURN(bool there, AwaitLayer(layer));
    if (!there) return Outcome::kMoved;
  }
  Parameters::Step step;
  RUBATO_ASSIGN_OR_RETURN(bool begun, Begin(&step));
  if (!begun) return Outcome::kMoved;
  PushAllEmpty(0);
  return Outcome::kStepDone;
}

std::vector<Trainer::LocalBatch> Trainer::BatchesOf(int64_t examples) const {
  const v1::TrainingConfig& training = options_.config->training();
  const int64_t size = options_.local != nullptr ? training.batch_size() : examples;
  std::vector<LocalBatch> batches;
  for (int64_t begin = 0; begin < examples; begin += size) {
    const int64_t count = std::min(size, examples - begin);
    batches.push_back({.number = begin / size,
                       .begin = begin,
                       .examples = count,
                       .pieces = std::min<int64_t>(training.micro_batches(), count),
                       .last = begin + count == examples});
  }
  return batches;
}

Trainer::Piece Trainer::PieceOf(const LocalBatch& local, int64_t number) {
  const int64_t begin = local.examples * number / local.pieces, end = local.examples * (number + 1) / local.pieces;
  return {.begin = local.begin + begin, .count = end - begin};
}

absl::StatusOr<Trainer::Outcome> Trainer::ComputeStep(const BatchSource::Next& next) {
  const int64_t examples = next.batch->examples;
  Work work = {.next = &next, .step = options_.parameters->next_step(), .batches = BatchesOf(examples)};
  for (LocalBatch& local : work.batches) {
    local.epoch = next.epoch + static_cast<double>(local.begin) * next.epochs_per_example;
    RUBATO_ASSIGN_OR_RETURN(const Outcome outcome, ComputeBatch(local, &work));
    if (outcome != Outcome::kStepDone) return outcome;
  }
  progress_.AddExamples(examples, work.loss, work.correct, next.epoch);
  return Outcome::kStepDone;
}

absl::StatusOr<Trainer::Outcome> Trainer::ComputeBatch(const LocalBatch& local, Work* work) {
  for (int64_t piece = 0; piece < local.pieces; ++piece) {
    const bool first = local.number == 0 && piece == 0;
    RUBATO_RETURN_IF_ERROR(BeginPiece(*work->next->batch, PieceOf(local, piece)));
    const uint64_t dropout_stream =
        StreamId("dropout", static_cast<uint64_t>(work->step.step),
                 (static_cast<uint64_t>(local.number) << 32) + options_.worker * 65536u + static_cast<uint64_t>(piece));
    RUBATO_ASSIGN_OR_RETURN(bool there, Forward(dropout_stream, first));
    if (!there) return Outcome::kMoved;
    if (first) {
      RUBATO_ASSIGN_OR_RETURN(bool begun, Begin(&work->step));
      if (!begun) return Outcome::kMoved;
    }
    RUBATO_RETURN_IF_ERROR(EnqueueLoss(local.examples));
    RUBATO_ASSIGN_OR_RETURN(bool finite, Backward(local, piece > 0, piece + 1 == local.pieces, work));
    if (!finite) return Outcome::kSkipped;
    StageAhead(*work, local, piece + 1);
  }
  return Outcome::kStepDone;
}

absl::Status Trainer::EnqueueLoss(int64_t examples) {
  Timed timed(&progress_, kLoss);
  SlowedDown slowed(options_.clock, options_.slow_factor);
  const float scale = scaler_.has_value() ? scaler_->scale() : 1;
  return options_.model->EnqueueLoss(scale / static_cast<float>(examples));
}

absl::StatusOr<bool> Trainer::TakeLoss(Work* work) {
  {
    Timed timed(&progress_, kAwaitLoss);
    SlowedDown slowed(options_.clock, options_.slow_factor);
    RUBATO_ASSIGN_OR_RETURN(const LossResult result, options_.model->AwaitLoss());
    work->loss += result.loss_sum;
    work->correct += result.correct;
  }
  if (std::isfinite(work->loss)) return true;
  RUBATO_RETURN_IF_ERROR(SkipStep(*work, absl::StrCat("the loss is ", work->loss)));
  return false;
}

absl::Status Trainer::BeginPiece(const Batch& batch, const Piece& piece) {
  const bool there = staged_.epoch == batch.epoch && staged_.batch_begin == batch.begin &&
                     staged_.batch_end == batch.end && staged_.piece.begin == piece.begin &&
                     staged_.piece.count == piece.count;
  if (!there) RUBATO_RETURN_IF_ERROR(Stage(batch, piece));
  staged_ = {};
  return options_.model->BeginStaged();
}

void Trainer::StageAhead(const Work& work, const LocalBatch& local, int64_t number) {
  const Batch* batch = work.next->batch;
  Piece piece;
  if (number < local.pieces) {
    piece = PieceOf(local, number);
  } else if (!local.last) {
    piece = PieceOf(work.batches[static_cast<size_t>(local.number) + 1], 0);
  } else {
    batch = options_.source->Upcoming();
    if (batch == nullptr || batch->examples == 0) return;
    piece = PieceOf(BatchesOf(batch->examples).front(), 0);
  }
  // Errors come again when it is its turn, if it ever is.
  Stage(*batch, piece).IgnoreError();
}

absl::Status Trainer::Stage(const Batch& batch, const Piece& piece) {
  Timed timed(&progress_, kInputs);
  StepWatchdog::Watch watch(options_.watchdog, "inputs");
  staged_ = {};
  const float* inputs = batch.inputs.data() + piece.begin * NumElements(options_.spec->input);
  if (options_.spec->loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) {
    const int32_t* classes = batch.classes.data() + piece.begin * options_.spec->labels_per_example();
    RUBATO_RETURN_IF_ERROR(options_.model->StageInputs(inputs, classes, piece.count));
  } else {
    const float* targets = batch.targets.data() + piece.begin * NumElements(options_.spec->output);
    RUBATO_RETURN_IF_ERROR(options_.model->StageInputs(inputs, targets, piece.count));
  }
  staged_ = {.epoch = batch.epoch, .batch_begin = batch.begin, .batch_end = batch.end, .piece = piece};
  return absl::OkStatus();
}

absl::StatusOr<bool> Trainer::Forward(uint64_t dropout_stream, bool first) {
  for (size_t l = 0; l < options_.spec->layers.size(); ++l) {
    const LayerSpec& layer = options_.spec->layers[l];
    if (first) {
      RUBATO_ASSIGN_OR_RETURN(bool there, AwaitLayer(layer));
      if (!there) return false;
    }
    Timed timed(&progress_, kForward, layer.name);
    SlowedDown slowed(options_.clock, options_.slow_factor);
    if (first && options_.local != nullptr) {
      for (int tensor : layer.tensors) RUBATO_RETURN_IF_ERROR(options_.local->Start(tensor));
    }
    RUBATO_RETURN_IF_ERROR(options_.model->ForwardLayer(static_cast<int>(l), /*training=*/true, dropout_stream));
  }
  return true;
}

absl::StatusOr<bool> Trainer::Backward(const LocalBatch& local, bool accumulate, bool final, Work* work) {
  // What is done to the gradients needs all of them.
  const bool whole = options_.config->training().clip_norm() > 0 || scaler_.has_value();
  const int last = static_cast<int>(options_.spec->layers.size()) - 1;
  for (int l = last; l >= 0; --l) {
    const LayerSpec& layer = options_.spec->layers[l];
    {
      Timed timed(&progress_, kBackward, layer.name);
      SlowedDown slowed(options_.clock, options_.slow_factor);
      RUBATO_RETURN_IF_ERROR(options_.model->BackwardLayer(l, accumulate, final));
    }
    // Before anything is pushed, and while the device has something to do. Scaled gradients are waited for when they
    // are complete, and the loss with them.
    if (l == last && !(final && scaler_.has_value())) {
      RUBATO_ASSIGN_OR_RETURN(bool finite, TakeLoss(work));
      if (!finite) return false;
    }
    if (!final || whole) continue;
    RUBATO_ASSIGN_OR_RETURN(bool finished, FinishLayer(layer, local, *work));
    if (!finished) return false;
  }
  if (!final || !whole) return true;
  RUBATO_ASSIGN_OR_RETURN(bool complete, CompleteGradients(work));
  if (!complete) return false;
  for (auto layer = options_.spec->layers.rbegin(); layer != options_.spec->layers.rend(); ++layer) {
    RUBATO_ASSIGN_OR_RETURN(bool finished, FinishLayer(*layer, local, *work));
    if (!finished) return false;
  }
  return true;
}

absl::StatusOr<bool> Trainer::CompleteGradients(Work* work) {
  if (scaler_.has_value()) {
    RUBATO_ASSIGN_OR_RETURN(bool finite, UnscaleGradients(work));
    if (!finite) return false;
  }
  const double clip_norm = options_.config->training().clip_norm();
  if (clip_norm == 0) return true;
  Timed timed(&progress_, kClip);
  SlowedDown slowed(options_.clock, options_.slow_factor);
  RUBATO_RETURN_IF_ERROR(options_.model->lead().ClipGradients(static_cast<float>(clip_norm)));
  return true;
}

absl::StatusOr<bool> Trainer::UnscaleGradients(Work* work) {
  bool finite = false;
  {
    Timed timed(&progress_, kUnscale);
    SlowedDown slowed(options_.clock, options_.slow_factor);
    // Exact, because the scale is a power of two.
    RUBATO_RETURN_IF_ERROR(options_.model->lead().ScaleGradients(1 / scaler_->scale()));
    RUBATO_ASSIGN_OR_RETURN(finite, options_.model->lead().GradientsAreFinite());
  }
  RUBATO_ASSIGN_OR_RETURN(const bool has_loss, TakeLoss(work));
  if (!has_loss) return false;
  if (!finite) {
    RUBATO_RETURN_IF_ERROR(SkipOverflow(*work));
    return false;
  }
  if (scaler_->OnFinite()) {
    options_.log->Info(absl::StrCat(Place(*work), ": the loss scale is ", scaler_->scale(), " from now on"));
    DescribeScale();
  }
  return true;
}

absl::StatusOr<bool> Trainer::FinishLayer(const LayerSpec& layer, const LocalBatch& local, const Work& work) {
  if (options_.tensors != nullptr && options_.tensors->describes_step() && local.last) {
    Timed timed(&progress_, kDescribe, layer.name);
    RUBATO_RETURN_IF_ERROR(options_.tensors->OnLayer(layer));
  }
  if (options_.local != nullptr) {
    RUBATO_ASSIGN_OR_RETURN(bool finite, UpdateLayer(layer, local, work));
    if (!finite) return false;
  }
  if (local.last) PushLayer(layer, work.next->batch->examples, work.next->epoch);
  return true;
}

absl::StatusOr<bool> Trainer::UpdateLayer(const LayerSpec& layer, const LocalBatch& local, const Work& work) {
  for (int tensor : layer.tensors) {
    bool finite = true;
    {
      Timed timed(&progress_, kUpdate, layer.name);
      SlowedDown slowed(options_.clock, options_.slow_factor);
      RUBATO_ASSIGN_OR_RETURN(
          finite, options_.local->Update(tensor, {.epoch = local.epoch,
                                                  .step = work.step.step,
                                                  .learning_rate_scale = LearningRateScale(work.step.plan)}));
      if (finite && local.last) RUBATO_RETURN_IF_ERROR(options_.local->WriteDelta(tensor));
    }
    if (finite) continue;
    if (!local.last) {
      RUBATO_RETURN_IF_ERROR(
          SkipStep(work, absl::StrCat("the gradient of ", options_.spec->tensors[tensor].name, " is not finite")));
      return false;
    }
    // Other layers may have been pushed. The gradient goes as it is, and the servers do with it what the config says.
    RUBATO_RETURN_IF_ERROR(options_.local->Restore(tensor));
  }
  return true;
}

void Trainer::PushLayer(const LayerSpec& layer, uint64_t examples, double epoch) {
  if (layer.tensors.empty()) return;
  Timed timed(&progress_, kPush, layer.name);
  for (auto tensor = layer.tensors.rbegin(); tensor != layer.tensors.rend(); ++tensor) {
    options_.parameters->PushTensor(*tensor, examples, epoch);
  }
}

void Trainer::PushAllEmpty(double epoch) {
  for (auto layer = options_.spec->layers.rbegin(); layer != options_.spec->layers.rend(); ++layer) {
    PushLayer(*layer, 0, epoch);
  }
}

std::string Trainer::Place(const Work& work) const {
  return absl::StrCat("worker ", options_.worker, ", step ", work.step.step);
}

absl::Status Trainer::SkipStep(const Work& work, absl::string_view what) {
  const std::string where = absl::StrCat(Place(work), ": ", what);
  if (options_.config->consistency().on_non_finite() == v1::ConsistencyConfig::STOP_JOB) {
    return NotFiniteError(where);
  }
  options_.log->Warning(absl::StrCat(where, "; the step is skipped"));
  RUBATO_RETURN_IF_ERROR(ContributeNothing(work));
  progress_.AddNonFinite();
  return absl::OkStatus();
}

absl::Status Trainer::SkipOverflow(const Work& work) {
  const float scale = scaler_->scale();
  if (!scaler_->OnOverflow()) return SkipStep(work, "gradients are not finite with a loss scale of 1");
  options_.log->Info(absl::StrCat(Place(work), ": gradients overflow with a loss scale of ", scale,
                                  "; the step is skipped, and the scale is ", scaler_->scale(), " from now on"));
  RUBATO_RETURN_IF_ERROR(ContributeNothing(work));
  DescribeScale();
  return absl::OkStatus();
}

absl::Status Trainer::ContributeNothing(const Work& work) {
  if (options_.local != nullptr) {
    for (size_t tensor = 0; tensor < options_.spec->tensors.size(); ++tensor) {
      RUBATO_RETURN_IF_ERROR(options_.local->Restore(static_cast<int>(tensor)));
    }
  }
  PushAllEmpty(work.next->epoch);
  return absl::OkStatus();
}

void Trainer::DescribeScale() { progress_.SetLossScale(scaler_->scale(), scaler_->overflows()); }

}  // namespace rubato::worker
