#include "worker/trainer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/status.h"

namespace rubato::worker {
namespace {

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
      Timed timed(&progress_, Phase::kData, "next batch");
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
  Timed timed(&progress_, Phase::kPullWait, "await", layer.name);
  for (int tensor : layer.tensors) {
    RUBATO_ASSIGN_OR_RETURN(bool there, options_.parameters->AwaitTensor(tensor));
    if (!there) return false;
  }
  return true;
}

absl::StatusOr<bool> Trainer::Begin(Parameters::Step* step) {
  Timed timed(&progress_, Phase::kPullWait, "begin step");
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

absl::StatusOr<Trainer::Outcome> Trainer::ComputeStep(const BatchSource::Next& next) {
  const int64_t examples = next.batch->examples;
  const int64_t size = options_.local != nullptr ? options_.config->training().batch_size() : examples;
  Work work = {.next = &next, .step = options_.parameters->next_step()};
  for (int64_t begin = 0; begin < examples; begin += size) {
    const LocalBatch local = {.number = begin / size,
                              .begin = begin,
                              .examples = std::min(size, examples - begin),
                              .last = examples - begin <= size,
                              .epoch = next.epoch + static_cast<double>(begin) * next.epochs_per_example};
    RUBATO_ASSIGN_OR_RETURN(const Outcome outcome, ComputeBatch(local, &work));
    if (outcome != Outcome::kStepDone) return outcome;
  }
  progress_.AddExamples(examples, work.loss, work.correct, next.epoch);
  return Outcome::kStepDone;
}

absl::StatusOr<Trainer::Outcome> Trainer::ComputeBatch(const LocalBatch& local, Work* work) {
  const int64_t parts = std::min<int64_t>(options_.config->training().micro_batches(), local.examples);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = local.begin + local.examples * part / parts;
    const int64_t end = local.begin + local.examples * (part + 1) / parts;
    const bool first = local.number == 0 && part == 0;
    RUBATO_RETURN_IF_ERROR(SetInputs(*work->next->batch, begin, end - begin));
    const uint64_t dropout_stream =
        StreamId("dropout", static_cast<uint64_t>(work->step.step),
                 (static_cast<uint64_t>(local.number) << 32) + options_.worker * 65536u + static_cast<uint64_t>(part));
    RUBATO_ASSIGN_OR_RETURN(bool there, Forward(dropout_stream, first));
    if (!there) return Outcome::kMoved;
    if (first) {
      RUBATO_ASSIGN_OR_RETURN(bool begun, Begin(&work->step));
      if (!begun) return Outcome::kMoved;
    }
    RUBATO_ASSIGN_OR_RETURN(const LossResult result, ComputeLoss(local.examples));
    work->loss += result.loss_sum;
    work->correct += result.correct;
    if (!std::isfinite(work->loss)) {
      RUBATO_RETURN_IF_ERROR(SkipStep(*work, absl::StrCat("the loss is ", work->loss)));
      return Outcome::kSkipped;
    }
    RUBATO_ASSIGN_OR_RETURN(bool finite, Backward(local, *work, part > 0, part + 1 == parts));
    if (!finite) return Outcome::kSkipped;
  }
  return Outcome::kStepDone;
}

absl::StatusOr<LossResult> Trainer::ComputeLoss(int64_t examples) {
  Timed timed(&progress_, Phase::kCompute, "loss");
  SlowedDown slowed(options_.clock, options_.slow_factor);
  const float scale = scaler_.has_value() ? scaler_->scale() : 1;
  return options_.model->ComputeLoss(scale / static_cast<float>(examples));
}

absl::Status Trainer::SetInputs(const Batch& batch, int64_t begin, int64_t count) {
  Timed timed(&progress_, Phase::kData, "inputs");
  StepWatchdog::Watch watch(options_.watchdog, "inputs");
  const float* inputs = batch.inputs.data() + begin * NumElements(options_.spec->input);
  if (options_.spec->loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) {
    return options_.model->SetInputs(inputs, batch.classes.data() + begin * options_.spec->labels_per_example(), count);
  }
  return options_.model->SetInputs(inputs, batch.targets.data() + begin * NumElements(options_.spec->output), count);
}

absl::StatusOr<bool> Trainer::Forward(uint64_t dropout_stream, bool first) {
  for (size_t l = 0; l < options_.spec->layers.size(); ++l) {
    const LayerSpec& layer = options_.spec->layers[l];
    if (first) {
      RUBATO_ASSIGN_OR_RETURN(bool there, AwaitLayer(layer));
      if (!there) return false;
    }
    Timed timed(&progress_, Phase::kCompute, "forward", layer.name);
    SlowedDown slowed(options_.clock, options_.slow_factor);
    if (first && options_.local != nullptr) {
      for (int tensor : layer.tensors) RUBATO_RETURN_IF_ERROR(options_.local->Start(tensor));
    }
    RUBATO_RETURN_IF_ERROR(options_.model->ForwardLayer(static_cast<int>(l), /*training=*/true, dropout_stream));
  }
  return true;
}

absl::StatusOr<bool> Trainer::Backward(const LocalBatch& local, const Work& work, bool accumulate, bool final) {
  // What is done to the gradients needs all of them.
  const bool whole = options_.config->training().clip_norm() > 0 || scaler_.has_value();
  for (int l = static_cast<int>(options_.spec->layers.size()) - 1; l >= 0; --l) {
    const LayerSpec& layer = options_.spec->layers[l];
    {
      Timed timed(&progress_, Phase::kCompute, "backward", layer.name);
      SlowedDown slowed(options_.clock, options_.slow_factor);
      RUBATO_RETURN_IF_ERROR(options_.model->BackwardLayer(l, accumulate, final));
    }
    if (!final || whole) continue;
    RUBATO_ASSIGN_OR_RETURN(bool finished, FinishLayer(layer, local, work));
    if (!finished) return false;
  }
  if (!final || !whole) return true;
  RUBATO_ASSIGN_OR_RETURN(bool complete, CompleteGradients(work));
  if (!complete) return false;
  for (auto layer = options_.spec->layers.rbegin(); layer != options_.spec->layers.rend(); ++layer) {
    RUBATO_ASSIGN_OR_RETURN(bool finished, FinishLayer(*layer, local, work));
    if (!finished) return false;
  }
  return true;
}

absl::StatusOr<bool> Trainer::CompleteGradients(const Work& work) {
  if (scaler_.has_value()) {
    RUBATO_ASSIGN_OR_RETURN(bool finite, UnscaleGradients(work));
    if (!finite) return false;
  }
  const double clip_norm = options_.config->training().clip_norm();
  if (clip_norm == 0) return true;
  Timed timed(&progress_, Phase::kCompute, "clip");
  SlowedDown slowed(options_.clock, options_.slow_factor);
  RUBATO_RETURN_IF_ERROR(options_.model->lead().ClipGradients(static_cast<float>(clip_norm)));
  return true;
}

absl::StatusOr<bool> Trainer::UnscaleGradients(const Work& work) {
  bool finite = false;
  {
    Timed timed(&progress_, Phase::kCompute, "unscale");
    SlowedDown slowed(options_.clock, options_.slow_factor);
    // Exact, because the scale is a power of two.
    RUBATO_RETURN_IF_ERROR(options_.model->lead().ScaleGradients(1 / scaler_->scale()));
    RUBATO_ASSIGN_OR_RETURN(finite, options_.model->lead().GradientsAreFinite());
  }
  if (!finite) {
    RUBATO_RETURN_IF_ERROR(SkipOverflow(work));
    return false;
  }
  if (scaler_->OnFinite()) {
    options_.log->Info(absl::StrCat(Place(work), ": the loss scale is ", scaler_->scale(), " from now on"));
    DescribeScale();
  }
  return true;
}

absl::StatusOr<bool> Trainer::FinishLayer(const LayerSpec& layer, const LocalBatch& local, const Work& work) {
  if (options_.tensors != nullptr && local.last) {
    Timed timed(&progress_, Phase::kCompute, "describe", layer.name);
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
      Timed timed(&progress_, Phase::kCompute, "update", layer.name);
      SlowedDown slowed(options_.clock, options_.slow_factor);
      RUBATO_ASSIGN_OR_RETURN(finite, options_.local->Update(tensor, local.epoch, work.step.step));
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
  Timed timed(&progress_, Phase::kPush, "push", layer.name);
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
    return absl::OutOfRangeError(absl::StrCat("STOP_JOB: ", where));
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
