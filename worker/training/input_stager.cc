#include "worker/training/input_stager.h"

#include "common/status.h"

namespace rubato::worker {
namespace {

constexpr TrainerProgress::Activity kInputs(TrainerProgress::Phase::kData, "inputs");

}  // namespace

absl::Status InputStager::Begin(const Batch& batch, const MicroBatch& micro_batch, const float* inputs) {
  if (staged_ != Of(batch, micro_batch)) RUBATO_RETURN_IF_ERROR(Stage(batch, micro_batch, inputs));
  staged_ = {};
  return model_->BeginStaged();
}

void InputStager::StageAhead(const Batch& batch, const MicroBatch& micro_batch) {
  // Rows of tables come later.
  if (!spec_->tables.empty()) return;
  // Errors come again when it is its turn, if it ever is.
  Stage(batch, micro_batch, batch.inputs.data()).IgnoreError();
}

absl::Status InputStager::Stage(const Batch& batch, const MicroBatch& micro_batch, const float* all_inputs) {
  TrainerProgress::Timed timed(progress_, kInputs);
  StepWatchdog::Watch watch(watchdog_, "inputs");
  staged_ = {};
  const float* inputs = all_inputs + micro_batch.begin * NumElements(spec_->input);
  if (spec_->has_classes()) {
    const int32_t* classes = batch.classes.data() + micro_batch.begin * spec_->labels_per_example();
    RUBATO_RETURN_IF_ERROR(model_->StageInputs(inputs, classes, micro_batch.count));
  } else {
    const float* targets = batch.targets.data() + micro_batch.begin * NumElements(spec_->output);
    RUBATO_RETURN_IF_ERROR(model_->StageInputs(inputs, targets, micro_batch.count));
  }
  staged_ = Of(batch, micro_batch);
  return absl::OkStatus();
}

}  // namespace rubato::worker
