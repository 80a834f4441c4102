#include "worker/training/trainer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "common/status.h"

namespace rubato::worker {
namespace {

using Activity = TrainerProgress::Activity;
using Phase = TrainerProgress::Phase;

constexpr Activity kNextBatch(Phase::kData, "next batch");
constexpr Activity kAwait(Phase::kPullWait, "await");
constexpr Activity kAwaitRows(Phase::kPullWait, "await rows");
constexpr Activity kRows(Phase::kData, "rows");
constexpr Activity kPushRows(Phase::kPush, "push rows");
constexpr Activity kBeginStep(Phase::kPullWait, "begin step");
constexpr Activity kForward(Phase::kCompute, "forward");
constexpr Activity kLoss(Phase::kCompute, "loss");
constexpr Activity kAwaitLoss(Phase::kCompute, "await loss");
constexpr Activity kBackward(Phase::kCompute, "backward");
constexpr Activity kCatchUp(Phase::kCompute, "catch up");
// The watchdog need not know: no device is waited for.
constexpr Activity kSlowedDown(Phase::kCompute, "slowed down", /*may_hang=*/false);

}  // namespace

Trainer::Trainer(const Options& options)
    : options_(options),
      swapped_(FindSwapped(options)),
      progress_(options.clock, options.trace, options.watchdog),
      rows_(options.spec, options.config->seed(), options.parameters),
      contribution_(&options_, &progress_, &rows_),
      inputs_(options.spec, options.model, &progress_, options.watchdog) {
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
    if (options_.slowdown != nullptr) options_.slowdown->BeginStep(step.step);
    if (options_.tensors != nullptr) options_.tensors->BeginStep(progress_.steps_total());
    BatchSource::Next next;
    {
      Timed timed(&progress_, kNextBatch);
      RUBATO_ASSIGN_OR_RETURN(next, options_.source->Get(step));
    }
    if (next.kind == BatchSource::Kind::kDone) return EndSteps();
    RUBATO_ASSIGN_OR_RETURN(const StepOutcome outcome,
                            next.kind == BatchSource::Kind::kEmpty ? EmptyStep() : ComputeStep(next));
    switch (outcome) {
      case StepOutcome::kComplete:
        progress_.EndStep();
        if (options_.tensors != nullptr) options_.tensors->EndStep(step.step);
        break;
      case StepOutcome::kSkipped:
        progress_.EndStep();
        break;
      case StepOutcome::kMoved:
        options_.parameters->Restart();
        break;
    }
  }
}

absl::StatusOr<StepOutcome> Trainer::AwaitLayer(const LayerSpec& layer) {
  if (layer.tensors.empty()) return StepOutcome::kComplete;
  Timed timed(&progress_, kAwait, layer.name);
  for (int tensor : layer.tensors) {
    RUBATO_ASSIGN_OR_RETURN(const bool there, options_.parameters->AwaitTensor(tensor));
    if (!there) return StepOutcome::kMoved;
  }
  return StepOutcome::kComplete;
}

absl::StatusOr<StepOutcome> Trainer::AwaitPart(int layer, int part) {
  const LayerSpec& spec = options_.spec->layers[layer];
  // Local SGD begins with whole tensors.
  if (options_.local != nullptr) return part == 0 ? AwaitLayer(spec) : StepOutcome::kComplete;
  if (options_.model->parts(layer) == 1) return AwaitLayer(spec);
  {
    Timed timed(&progress_, kAwait, spec.name);
    const int64_t end = options_.model->lead().PartEnd(layer, part);
    RUBATO_ASSIGN_OR_RETURN(const bool there, options_.parameters->AwaitElements(spec.tensors.front(), end));
    if (!there) return StepOutcome::kMoved;
  }
  // With the other tensors, and as they are all waited for.
  return part + 1 < options_.model->parts(layer) ? StepOutcome::kComplete : AwaitLayer(spec);
}

absl::StatusOr<StepOutcome> Trainer::Begin(Parameters::Step* step) {
  Timed timed(&progress_, kBeginStep);
  RUBATO_ASSIGN_OR_RETURN(const bool begun, options_.parameters->BeginStep(step));
  if (!begun) return StepOutcome::kMoved;
  if (step->generation != generation_) RUBATO_RETURN_IF_ERROR(EnterPlan(*step));
  options_.source->Begun();
  rows_.Begun();
  progress_.EnterStep(step->step, step->generation);
  options_.log->SetPosition(step->generation, step->step);
  return StepOutcome::kComplete;
}

absl::Status Trainer::EnterPlan(const Parameters::Step& step) {
  generation_ = step.generation;
  return step.plan.has_cut() && options_.take_cut ? options_.take_cut(step.plan) : absl::OkStatus();
}

absl::StatusOr<StepOutcome> Trainer::EmptyStep() {
  for (const LayerSpec& layer : options_.spec->layers) RUBATO_RETURN_UNLESS_COMPLETE(AwaitLayer(layer));
  Parameters::Step step;
  RUBATO_RETURN_UNLESS_COMPLETE(Begin(&step));
  contribution_.PushNothing();
  return StepOutcome::kComplete;
}

absl::StatusOr<StepOutcome> Trainer::ComputeStep(const BatchSource::Next& next) {
  const int64_t examples = next.batch->examples;
  StepWork work = {.next = &next,
                   .step = options_.parameters->next_step(),
                   .batches = SplitStep(options_.config->training(), options_.local != nullptr, examples)};
  for (LocalBatch& local : work.batches) {
    local.epoch = next.epoch + static_cast<double>(local.begin) * next.epochs_per_example;
    RUBATO_RETURN_UNLESS_COMPLETE(ComputeBatch(local, &work));
  }
  progress_.AddExamples(examples, work.loss, work.correct, next.epoch);
  return StepOutcome::kComplete;
}

absl::StatusOr<StepOutcome> Trainer::ComputeBatch(const LocalBatch& local, StepWork* work) {
  for (int64_t number = 0; number < local.micro_batches; ++number) {
    const bool first = local.number == 0 && number == 0;
    const Batch& batch = *work->next->batch;
    if (first) RUBATO_RETURN_UNLESS_COMPLETE(AwaitRows(batch));
    RUBATO_RETURN_IF_ERROR(inputs_.Begin(batch, MicroBatchOf(local, number), ComposeInputs(batch)));
    RUBATO_RETURN_UNLESS_COMPLETE(Forward(DropoutStream(*work, local, number), first));
    if (first) {
      RUBATO_RETURN_UNLESS_COMPLETE(Begin(&work->step));
      RUBATO_RETURN_IF_ERROR(Pause());
    }
    RUBATO_RETURN_IF_ERROR(EnqueueLoss(local.examples));
    RUBATO_RETURN_UNLESS_COMPLETE(Backward(local, number > 0, number + 1 == local.micro_batches, work));
    StageAhead(*work, local, number + 1);
  }
  return StepOutcome::kComplete;
}

absl::Status Trainer::Pause() {
  if (options_.slowdown == nullptr || !options_.slowdown->pauses()) return absl::OkStatus();
  {
    // What it computes meanwhile would make the pause shorter.
    Timed timed(&progress_, kCatchUp);
    for (const Replica& replica : options_.model->replicas()) RUBATO_RETURN_IF_ERROR(replica.backend->Synchronize());
  }
  Timed timed(&progress_, kSlowedDown);
  options_.slowdown->Pause();
  return absl::OkStatus();
}

uint64_t Trainer::DropoutStream(const StepWork& work, const LocalBatch& local, int64_t micro_batch) const {
  return StreamId(
      "dropout", static_cast<uint64_t>(work.step.step),
      (static_cast<uint64_t>(local.number) << 32) + options_.worker * 65536u + static_cast<uint64_t>(micro_batch));
}

absl::StatusOr<StepOutcome> Trainer::Forward(uint64_t dropout_stream, bool first) {
  for (int l = 0; l < static_cast<int>(options_.spec->layers.size()); ++l) {
    const LayerSpec& layer = options_.spec->layers[l];
    for (int part = 0; part < options_.model->parts(l); ++part) {
      if (first) RUBATO_RETURN_UNLESS_COMPLETE(AwaitPart(l, part));
      Timed timed(&progress_, kForward, layer.name);
      Slowdown::Computing computing(options_.slowdown);
      if (first && part == 0 && options_.local != nullptr) {
        for (int tensor : layer.tensors) RUBATO_RETURN_IF_ERROR(options_.local->Start(tensor));
      }
      RUBATO_RETURN_IF_ERROR(options_.model->ForwardPart(l, part, /*training=*/true, dropout_stream));
    }
  }
  return StepOutcome::kComplete;
}

absl::Status Trainer::EnqueueLoss(int64_t examples) {
  Timed timed(&progress_, kLoss);
  Slowdown::Computing computing(options_.slowdown);
  return options_.model->EnqueueLoss(contribution_.loss_scale() / static_cast<float>(examples));
}

absl::StatusOr<StepOutcome> Trainer::TakeLoss(StepWork* work) {
  {
    Timed timed(&progress_, kAwaitLoss);
    Slowdown::Computing computing(options_.slowdown);
    RUBATO_ASSIGN_OR_RETURN(const LossResult result, options_.model->AwaitLoss());
    work->loss += result.loss_sum;
    work->correct += result.correct;
  }
  if (std::isfinite(work->loss)) return StepOutcome::kComplete;
  return contribution_.Skip(*work, absl::StrCat("the loss is ", work->loss));
}

Trainer::Swapped Trainer::FindSwapped(const Options& options) {
  const int last = static_cast<int>(options.spec->layers.size()) - 1;
  int first = -1;
  for (int l = 0; l < last; ++l) {
    if (options.model->parts(l) <= 1) continue;
    if (first >= 0) return options.model->CanDefer(l) ? Swapped{.first = first, .second = l} : Swapped();
    first = l;
  }
  return {};
}

absl::Status Trainer::BackwardLayer(int l, bool accumulate, bool final, const StepWork& work) {
  const LayerSpec& layer = options_.spec->layers[l];
  const bool is_last = l + 1 == static_cast<int>(options_.spec->layers.size());
  const int parts = final && !is_last && contribution_.pushes_parts() ? options_.model->parts(l) : 1;
  for (int part = 0; part < parts; ++part) {
    if (part > 0) contribution_.PushElements(layer, options_.model->lead().PartEnd(l, part - 1), work);
    Timed timed(&progress_, kBackward, layer.name);
    Slowdown::Computing computing(options_.slowdown);
    RUBATO_RETURN_IF_ERROR(parts > 1 ? options_.model->BackwardPart(l, part, accumulate)
                                     : options_.model->BackwardLayer(l, accumulate, final));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepOutcome> Trainer::Backward(const LocalBatch& local, bool accumulate, bool final, StepWork* work) {
  const bool after_all = contribution_.needs_all_gradients();
  const Swapped swapped = final && contribution_.pushes_parts() ? swapped_ : Swapped();
  const int last = static_cast<int>(options_.spec->layers.size()) - 1;
  for (int l = last; l >= 0; --l) {
    const LayerSpec& layer = options_.spec->layers[l];
    if (l == swapped.second) {
      Timed timed(&progress_, kBackward, layer.name);
      Slowdown::Computing computing(options_.slowdown);
      RUBATO_RETURN_IF_ERROR(options_.model->BackwardInput(l));
      continue;
    }
    RUBATO_RETURN_IF_ERROR(BackwardLayer(l, accumulate, final, *work));
    // Before anything is pushed, and while the device has something to do. Scaled gradients are waited for when they
    // are complete, and the loss with them.
    if (l == last && !(final && contribution_.scales_loss())) RUBATO_RETURN_UNLESS_COMPLETE(TakeLoss(work));
    if (!final || after_all) continue;
    RUBATO_RETURN_UNLESS_COMPLETE(contribution_.FinishLayer(layer, local, *work));
    if (l != swapped.first) continue;
    RUBATO_RETURN_IF_ERROR(BackwardLayer(swapped.second, accumulate, final, *work));
    RUBATO_RETURN_UNLESS_COMPLETE(contribution_.FinishLayer(options_.spec->layers[swapped.second], local, *work));
  }
  if (!rows_.empty()) RUBATO_RETURN_IF_ERROR(PushRows(*work));
  if (!final || !after_all) return StepOutcome::kComplete;
  RUBATO_RETURN_UNLESS_COMPLETE(CompleteGradients(work));
  for (auto layer = options_.spec->layers.rbegin(); layer != options_.spec->layers.rend(); ++layer) {
    RUBATO_RETURN_UNLESS_COMPLETE(contribution_.FinishLayer(*layer, local, *work));
  }
  return StepOutcome::kComplete;
}

absl::StatusOr<StepOutcome> Trainer::AwaitRows(const Batch& batch) {
  if (rows_.empty()) return StepOutcome::kComplete;
  {
    Timed timed(&progress_, kRows);
    rows_.Ask(batch);
  }
  Timed timed(&progress_, kAwaitRows);
  RUBATO_ASSIGN_OR_RETURN(const bool there, rows_.Await());
  return there ? StepOutcome::kComplete : StepOutcome::kMoved;
}

const float* Trainer::ComposeInputs(const Batch& batch) {
  if (rows_.empty()) return batch.inputs.data();
  Timed timed(&progress_, kRows);
  return rows_.Compose(batch);
}

absl::Status Trainer::PushRows(const StepWork& work) {
  Timed timed(&progress_, kPushRows);
  RUBATO_ASSIGN_OR_RETURN(const float* const gradient, options_.model->lead().AwaitInputGradient());
  // So that its rows come with the answer.
  const Batch* const upcoming = options_.source->Upcoming();
  if (upcoming != nullptr && upcoming->examples > 0) rows_.Ask(*upcoming);
  contribution_.PushRows(gradient, work);
  return absl::OkStatus();
}

absl::StatusOr<StepOutcome> Trainer::CompleteGradients(StepWork* work) {
  if (contribution_.scales_loss()) {
    RUBATO_ASSIGN_OR_RETURN(const bool finite, contribution_.Unscale());
    RUBATO_RETURN_UNLESS_COMPLETE(TakeLoss(work));
    RUBATO_RETURN_UNLESS_COMPLETE(contribution_.AdjustScale(finite, *work));
  }
  RUBATO_RETURN_IF_ERROR(contribution_.Clip());
  return StepOutcome::kComplete;
}

void Trainer::StageAhead(const StepWork& work, const LocalBatch& local, int64_t number) {
  if (number < local.micro_batches) return inputs_.StageAhead(*work.next->batch, MicroBatchOf(local, number));
  if (!local.last) {
    const LocalBatch& next = work.batches[static_cast<size_t>(local.number) + 1];
    return inputs_.StageAhead(*work.next->batch, MicroBatchOf(next, 0));
  }
  const Batch* upcoming = options_.source->Upcoming();
  if (upcoming == nullptr || upcoming->examples == 0) return;
  const bool local_sgd = options_.local != nullptr;
  inputs_.StageAhead(*upcoming,
                     MicroBatchOf(SplitStep(options_.config->training(), local_sgd, upcoming->examples).front(), 0));
}

}  // namespace rubato::worker
