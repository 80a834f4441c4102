#include "worker/training/contribution.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/task.h"
#include "worker/ps_client/not_finite.h"
#include "worker/training/slowdown.h"

namespace rubato::worker {
namespace {

using Activity = TrainerProgress::Activity;
using Phase = TrainerProgress::Phase;
using Timed = TrainerProgress::Timed;

constexpr Activity kClip(Phase::kCompute, "clip");
constexpr Activity kUnscale(Phase::kCompute, "unscale");
constexpr Activity kDescribe(Phase::kCompute, "describe");
constexpr Activity kUpdate(Phase::kCompute, "update");
constexpr Activity kPush(Phase::kPush, "push");

Parameters::Pushed AllOf(const BatchSource::Next& next) {
  const Batch& batch = *next.batch;
  Parameters::Pushed pushed = {.examples = static_cast<uint64_t>(batch.examples), .epoch = next.epoch};
  pushed.slice.set_shard(batch.shard);
  pushed.slice.set_begin(batch.begin);
  pushed.slice.set_end(batch.end);
  return pushed;
}

}  // namespace

Contribution::Contribution(const TrainerOptions* options, TrainerProgress* progress, RowExchange* rows)
    : options_(*options), progress_(progress), rows_(rows) {
  if (options_.scaler != nullptr) DescribeScale();
}

bool Contribution::needs_all_gradients() const {
  return options_.scaler != nullptr || options_.config->training().clip_norm() > 0;
}

bool Contribution::pushes_parts() const {
  // What describes a step looks at the layer's weights and gradients when all are there.
  const bool described = options_.tensors != nullptr && options_.tensors->describes_step();
  return options_.local == nullptr && !described && !needs_all_gradients();
}

absl::StatusOr<bool> Contribution::Unscale() {
  Timed timed(progress_, kUnscale);
  Slowdown::Computing computing(options_.slowdown);
  // Exact, because the scale is a power of two.
  RUBATO_RETURN_IF_ERROR(options_.model->lead().ScaleGradients(1 / options_.scaler->scale()));
  return options_.model->lead().GradientsAreFinite();
}

absl::StatusOr<StepOutcome> Contribution::AdjustScale(bool finite, const StepWork& work) {
  if (!finite) return SkipOverflow(work);
  if (options_.scaler->OnFinite()) {
    options_.log->Info(absl::StrCat(Place(work), ": the loss scale is ", options_.scaler->scale(), " from now on"));
    DescribeScale();
  }
  return StepOutcome::kComplete;
}

absl::Status Contribution::Clip() {
  const double clip_norm = options_.config->training().clip_norm();
  if (clip_norm == 0) return absl::OkStatus();
  Timed timed(progress_, kClip);
  Slowdown::Computing computing(options_.slowdown);
  return options_.model->lead().ClipGradients(static_cast<float>(clip_norm));
}

absl::StatusOr<StepOutcome> Contribution::FinishLayer(const LayerSpec& layer, const LocalBatch& local,
                                                      const StepWork& work) {
  if (options_.tensors != nullptr && options_.tensors->describes_step() && local.last) {
    Timed timed(progress_, kDescribe, layer.name);
    RUBATO_RETURN_IF_ERROR(options_.tensors->OnLayer(layer));
  }
  if (options_.local != nullptr) RUBATO_RETURN_UNLESS_COMPLETE(UpdateLayer(layer, local, work));
  if (local.last) PushLayer(layer, AllOf(*work.next));
  return StepOutcome::kComplete;
}

absl::StatusOr<StepOutcome> Contribution::UpdateLayer(const LayerSpec& layer, const LocalBatch& local,
                                                      const StepWork& work) {
  for (int tensor : layer.tensors) {
    bool finite = true;
    {
      Timed timed(progress_, kUpdate, layer.name);
      Slowdown::Computing computing(options_.slowdown);
      RUBATO_ASSIGN_OR_RETURN(finite,
                              options_.local->Update(tensor, {.epoch = local.epoch,
                                                              .step = work.step.step,
                                                              .learning_rate_scale = LearningRateScale(work.step.plan),
                                                              .momentum = MomentumOf(work.step.plan)}));
      if (finite && local.last) RUBATO_RETURN_IF_ERROR(options_.local->WriteDelta(tensor));
    }
    if (finite) continue;
    if (!local.last) {
      return Skip(work, absl::StrCat("the gradient of ", options_.spec->tensors[tensor].name, " is not finite"));
    }
    // Other layers may have been pushed. The gradient goes as it is, and the servers do with it what the config says.
    RUBATO_RETURN_IF_ERROR(options_.local->Restore(tensor));
  }
  return StepOutcome::kComplete;
}

void Contribution::PushLayer(const LayerSpec& layer, const Parameters::Pushed& pushed) {
  if (layer.tensors.empty()) return;
  Timed timed(progress_, kPush, layer.name);
  for (auto tensor = layer.tensors.rbegin(); tensor != layer.tensors.rend(); ++tensor) {
    options_.parameters->PushTensor(*tensor, pushed);
  }
}

void Contribution::PushElements(const LayerSpec& layer, int64_t elements, const StepWork& work) {
  Timed timed(progress_, kPush, layer.name);
  options_.parameters->PushElements(layer.tensors.front(), elements, AllOf(*work.next));
}

void Contribution::PushNothing(Parameters::Pushed pushed) {
  pushed.examples = 0;
  for (auto layer = options_.spec->layers.rbegin(); layer != options_.spec->layers.rend(); ++layer) {
    PushLayer(*layer, pushed);
  }
  rows_->PushNothing(pushed);
}

void Contribution::PushRows(const float* input_gradient, const StepWork& work) {
  rows_->Push(input_gradient, AllOf(*work.next));
}

std::string Contribution::Place(const StepWork& work) const {
  return absl::StrCat("worker ", options_.worker, ", step ", work.step.step);
}

absl::StatusOr<StepOutcome> Contribution::Skip(const StepWork& work, absl::string_view what) {
  const std::string where = absl::StrCat(Place(work), ": ", what);
  if (options_.config->consistency().on_non_finite() == v1::ConsistencyConfig::STOP_JOB) {
    return NotFiniteError(where);
  }
  options_.log->Warning(absl::StrCat(where, "; the step is skipped"));
  RUBATO_RETURN_IF_ERROR(ContributeNothing(work));
  progress_->AddNonFinite();
  return StepOutcome::kSkipped;
}

absl::StatusOr<StepOutcome> Contribution::SkipOverflow(const StepWork& work) {
  const float scale = options_.scaler->scale();
  if (!options_.scaler->OnOverflow()) return Skip(work, "gradients are not finite with a loss scale of 1");
  options_.log->Info(absl::StrCat(Place(work), ": gradients overflow with a loss scale of ", scale,
                                  "; the step is skipped, and the scale is ", options_.scaler->scale(),
                                  " from now on"));
  RUBATO_RETURN_IF_ERROR(ContributeNothing(work));
  DescribeScale();
  return StepOutcome::kSkipped;
}

absl::Status Contribution::ContributeNothing(const StepWork& work) {
  if (options_.local != nullptr) {
    for (size_t tensor = 0; tensor < options_.spec->tensors.size(); ++tensor) {
      RUBATO_RETURN_IF_ERROR(options_.local->Restore(static_cast<int>(tensor)));
    }
  }
  PushNothing(AllOf(*work.next));
  return absl::OkStatus();
}

void Contribution::DescribeScale() { progress_->SetLossScale(options_.scaler->scale(), options_.scaler->overflows()); }

}  // namespace rubato::worker
