#include "worker/evaluator/evaluation.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato::worker {
namespace {

// For one snapshot; training may have to reach the step that was asked for.
constexpr absl::Duration kPullTimeout = absl::Seconds(30);

}  // namespace

Evaluation::Evaluation(const Options& options)
    : options_(options),
      puller_(options.job, options.task, options.security, options.config->cluster().message_bytes()),
      rows_(options.job, options.task, options.security, options.model->lead()->spec(), options.config->seed()),
      hashes_(HashesOfTables(options.model->lead()->spec(), options.config->seed())) {}

absl::Status Evaluation::Measure(const v1::Evaluate& evaluate, v1::EvaluationResult* result) {
  const std::string name = absl::StrCat("evaluation ", evaluate.evaluation_id());
  options_.watchdog->Begin(name);
  RUBATO_ASSIGN_OR_RETURN(const SnapshotPuller::Snapshot snapshot, PullWeights(evaluate));
  Measures measures(options_.dataset->target_elements(), options_.config->evaluation().recall_at());
  RUBATO_ASSIGN_OR_RETURN(const LossResult measured, EvaluateAll(name, &measures));
  const int64_t examples = options_.dataset->size();
  result->set_loss(measured.loss_sum / static_cast<double>(examples));
  if (options_.dataset->label_kind() == LabelKind::kClasses) {
    result->set_accuracy(measured.correct / static_cast<double>(examples));
    if (const std::optional<double> area = measures.auc.Value(); area) result->set_auc(*area);
    if (const std::optional<double> ratio = measures.calibration.Value(); ratio) result->set_calibration(*ratio);
    if (const std::optional<double> share = measures.recall.Value(); share) result->set_recall(*share);
  } else if (const std::optional<double> value = measures.r2.Value(measured.loss_sum); value.has_value()) {
    result->set_r2(*value);
  }
  result->set_examples(examples);
  result->set_step(snapshot.step);
  result->set_version_min(snapshot.version_min);
  result->set_version_max(snapshot.version_max);
  return absl::OkStatus();
}

absl::StatusOr<SnapshotPuller::Snapshot> Evaluation::PullWeights(const v1::Evaluate& evaluate) {
  Model* const model = options_.model->lead();
  Backend* const backend = options_.model->backend();
  absl::Status stored;
  RUBATO_ASSIGN_OR_RETURN(
      SnapshotPuller::Snapshot snapshot,
      puller_.Pull(evaluate.at_step(), kPullTimeout, [&](int tensor, int64_t offset, const void* data, int64_t count) {
        StepWatchdog::Watch watch(options_.watchdog, "weights to the device");
        absl::Status status = backend->CopyToDevice(model->weight(tensor), offset, count, data);
        // The message's memory goes when this returns.
        if (status.ok()) status = backend->Synchronize();
        if (stored.ok()) stored = status;
      }));
  RUBATO_RETURN_IF_ERROR(stored);
  return snapshot;
}

absl::Status Evaluation::AddRows(const Batch& batch, std::vector<float>* inputs) {
  const ModelSpec& spec = options_.model->lead()->spec();
  const std::vector<TableKeysOfBatch> tables = KeysOfBatch(spec, hashes_, batch);
  PutFeatures(spec, batch.inputs.data(), batch.examples, inputs);
  std::vector<float> rows;
  for (size_t table = 0; table < tables.size(); ++table) {
    rows.resize(tables[table].keys.size() * spec.tables[table].dimension());
    RUBATO_RETURN_IF_ERROR(rows_.Pull(static_cast<int>(table), tables[table].keys, kPullTimeout, rows.data()));
    PutRows(spec.tables[table], tables[table], rows.data(), batch.examples, NumElements(spec.input), inputs->data());
  }
  return absl::OkStatus();
}

absl::Status Evaluation::AddScores(const std::vector<int32_t>& classes, int64_t examples, Measures* measures) {
  Model* const model = options_.model->lead();
  const ModelSpec& spec = model->spec();
  const bool wants_recall = options_.config->evaluation().recall_at() > 0;
  if (!spec.has_two_classes() && !wants_recall) return absl::OkStatus();
  const bool has_one_logit = spec.loss == v1::ModelConfig::BINARY_CROSS_ENTROPY;
  RUBATO_ASSIGN_OR_RETURN(const float* const logits, model->AwaitOutput());
  const int64_t labels = examples * spec.labels_per_example(), outputs = spec.output.back();
  for (int64_t i = 0; wants_recall && i < labels; ++i) {
    measures->recall.Add(logits + outputs * i, outputs, classes[i]);
  }
  for (int64_t i = 0; spec.has_two_classes() && i < examples; ++i) {
    measures->auc.Add(has_one_logit ? logits[i] : logits[2 * i + 1] - logits[2 * i], classes[i]);
    if (has_one_logit) measures->calibration.Add(logits[i], classes[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<LossResult> Evaluation::EvaluateAll(const std::string& name, Measures* measures) {
  Model* const model = options_.model->lead();
  const Dataset& dataset = *options_.dataset;
  const int64_t batch = options_.config->evaluation().batch_size();
  std::vector<int64_t> indices(batch);
  Batch keys;
  std::vector<float> inputs(batch * dataset.input_elements()), with_rows;
  std::vector<int32_t> classes(batch * dataset.labels_per_example());
  std::vector<float> targets(batch * std::max<int64_t>(dataset.target_elements(), 1));
  LossResult total;
  for (int64_t begin = 0; begin < dataset.size(); begin += batch) {
    if (cancelled_) return absl::CancelledError("the evaluation is given up");
    const int64_t count = std::min(batch, dataset.size() - begin);
    std::iota(indices.begin(), indices.begin() + count, begin);
    keys.examples = count;
    keys.keys.resize(count * dataset.keys_per_example());
    keys.key_counts.resize(count * dataset.key_counts_per_example());
    keys.key_weights.resize(count * dataset.key_weights_per_example());
    RUBATO_RETURN_IF_ERROR(dataset.Read(indices.data(), count, inputs.data(), classes.data(), targets.data(),
                                        keys.keys.data(), keys.key_counts.data(), keys.key_weights.data()));
    const float* whole = inputs.data();
    if (!model->spec().tables.empty()) {
      keys.inputs.assign(inputs.begin(), inputs.begin() + count * dataset.input_elements());
      RUBATO_RETURN_IF_ERROR(AddRows(keys, &with_rows));
      whole = with_rows.data();
    }
    options_.watchdog->Begin(absl::StrCat("a batch of ", name));
    StepWatchdog::Watch watch(options_.watchdog, "forward pass");
    if (dataset.label_kind() == LabelKind::kClasses) {
      RUBATO_RETURN_IF_ERROR(model->SetInputs(whole, classes.data(), count));
    } else {
      RUBATO_RETURN_IF_ERROR(model->SetInputs(whole, targets.data(), count));
      measures->r2.AddLabels(targets.data(), count);
    }
    RUBATO_ASSIGN_OR_RETURN(const LossResult measured, model->EvaluateBatch());
    RUBATO_RETURN_IF_ERROR(AddScores(classes, count, measures));
    total.loss_sum += measured.loss_sum;
    total.correct += measured.correct;
  }
  return total;
}

}  // namespace rubato::worker
