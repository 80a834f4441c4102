#include "cli/predict/predict.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/checkpoint/run_checkpoints.h"
#include "cli/predict/predicted_line.h"
#include "cli/predict/stored_rows.h"
#include "common/config/awaited_model.h"
#include "common/config/load.h"
#include "common/model_spec.h"
#include "common/status.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"
#include "worker/data/open_dataset.h"
#include "worker/device/worker_model.h"

namespace rubato {
namespace {

// The examples to score in the place of those to test with.
absl::Status SetInput(const std::string& input, v1::DataConfig* data) {
  switch (data->source_case()) {
    case v1::DataConfig::kCsv:
      data->mutable_csv()->set_test_path(input);
      return absl::OkStatus();
    case v1::DataConfig::kCifar:
      data->mutable_cifar()->clear_test_paths();
      data->mutable_cifar()->add_test_paths(input);
      return absl::OkStatus();
    case v1::DataConfig::kCriteo:
      data->mutable_criteo()->clear_test_paths();
      data->mutable_criteo()->add_test_paths(input);
      return absl::OkStatus();
    case v1::DataConfig::kColumns:
      data->mutable_columns()->clear_test_paths();
      data->mutable_columns()->add_test_paths(input);
      return absl::OkStatus();
    case v1::DataConfig::kLibsvm:
      data->mutable_libsvm()->clear_test_paths();
      data->mutable_libsvm()->add_test_paths(input);
      return absl::OkStatus();
    case v1::DataConfig::kIdx:
    case v1::DataConfig::kTeacher:
    case v1::DataConfig::kText:
    case v1::DataConfig::kClient:
    case v1::DataConfig::kClicks:
    case v1::DataConfig::SOURCE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "--input: the job's examples are not lines or records of one file; allowed: a run of data.csv, data.cifar, "
      "data.criteo, data.columns or data.libsvm");
}

absl::StatusOr<v1::JobConfig> LoadConfig(const PredictOptions& options) {
  const std::string path = JoinPath(options.run_directory, "job.textproto");
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, LoadJobConfig(path, options.overrides, {.may_await_model = true}));
  if (IsClientJob(config)) {
    return absl::FailedPreconditionError("the run's model is in its workers' own program, which has to score examples");
  }
  RUBATO_RETURN_IF_ERROR(SetInput(options.input, config.mutable_data()));
  return config;
}

absl::Status LoadWeights(const std::string& directory, worker::WorkerModel* model) {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<NamedTensor> tensors, ReadCheckpointTensors(directory));
  const std::vector<TensorSpec>& wanted = model->lead()->spec().tensors;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const NamedTensor& tensor) { return tensor.name == wanted[i].name; });
    if (found == tensors.end() || found->shape != wanted[i].shape) {
      return absl::FailedPreconditionError(
          absl::StrCat(directory, ": has ", found == tensors.end() ? "no tensor" : ShapeText(found->shape), " ",
                       wanted[i].name, "; expected: ", ShapeText(wanted[i].shape), ", as the run's config says"));
    }
    RUBATO_RETURN_IF_ERROR(model->backend()->CopyToDevice(model->lead()->weight(static_cast<int>(i)), 0,
                                                          static_cast<int64_t>(found->values.size()),
                                                          found->values.data()));
    // The memory that it is copied from goes at the end.
    RUBATO_RETURN_IF_ERROR(model->backend()->Synchronize());
  }
  return absl::OkStatus();
}

// Scores examples [begin, begin + batch.examples) of the data set.
class Scorer {
 public:
  Scorer(const worker::Dataset* dataset, worker::Model* model, const StoredRows* rows)
      : dataset_(dataset), model_(model), rows_(rows) {}

  absl::Status Score(int64_t begin, int64_t count, std::ostream* out) {
    RUBATO_RETURN_IF_ERROR(Read(begin, count));
    const float* inputs = batch_.inputs.data();
    if (!model_->spec().tables.empty()) {
      RUBATO_RETURN_IF_ERROR(rows_->AddTo(batch_, &with_rows_));
      inputs = with_rows_.data();
    }
    RUBATO_RETURN_IF_ERROR(dataset_->label_kind() == worker::LabelKind::kClasses
                               ? model_->SetInputs(inputs, batch_.classes.data(), count)
                               : model_->SetInputs(inputs, batch_.targets.data(), count));
    RUBATO_RETURN_IF_ERROR(model_->EvaluateBatch().status());
    RUBATO_ASSIGN_OR_RETURN(const float* const outputs, model_->AwaitOutput());
    const int64_t each = NumElements(model_->spec().output);
    for (int64_t i = 0; i < count; ++i) {
      *out << PredictedLine(model_->spec().loss, absl::MakeConstSpan(outputs + i * each, each)) << '\n';
    }
    return out->good() ? absl::OkStatus() : absl::UnavailableError("cannot write the predictions");
  }

 private:
  absl::Status Read(int64_t begin, int64_t count) {
    indices_.resize(count);
    std::iota(indices_.begin(), indices_.end(), begin);
    batch_.examples = count;
    batch_.inputs.resize(count * dataset_->input_elements());
    batch_.classes.resize(count * dataset_->labels_per_example());
    batch_.targets.resize(count * dataset_->target_elements());
    batch_.keys.resize(count * dataset_->keys_per_example());
    batch_.key_counts.resize(count * dataset_->key_counts_per_example());
    batch_.key_weights.resize(count * dataset_->key_weights_per_example());
    return dataset_->Read(indices_.data(), count, batch_.inputs.data(), batch_.classes.data(), batch_.targets.data(),
                          batch_.keys.data(), batch_.key_counts.data(), batch_.key_weights.data());
  }

  const worker::Dataset* const dataset_;
  worker::Model* const model_;
  const StoredRows* const rows_;
  std::vector<int64_t> indices_;
  worker::Batch batch_;
  std::vector<float> with_rows_;
};

}  // namespace

absl::StatusOr<PredictReport> Predict(const PredictOptions& options, std::ostream* out) {
  RUBATO_ASSIGN_OR_RETURN(const v1::JobConfig config, LoadConfig(options));
  RUBATO_ASSIGN_OR_RETURN(const ModelSpec spec, BuildModelSpec(config.model()));
  PredictReport report;
  RUBATO_ASSIGN_OR_RETURN(report.checkpoint, FindCheckpoint(options.run_directory, options.checkpoint));
  const std::string directory = JoinPath(CheckpointsOfRun(options.run_directory), report.checkpoint);
  RUBATO_ASSIGN_OR_RETURN(const auto dataset, worker::OpenDataset(config, spec, worker::Split::kTest));
  RUBATO_ASSIGN_OR_RETURN(
      const std::unique_ptr<worker::WorkerModel> model,
      worker::WorkerModel::Create(
          {.config = &config, .spec = &spec, .evaluates = true, .factory = options.factory, .log = options.log}));
  RUBATO_RETURN_IF_ERROR(LoadWeights(directory, model.get()));
  RUBATO_ASSIGN_OR_RETURN(const StoredRows rows, StoredRows::Read(directory, spec, config.seed()));
  Scorer scorer(dataset.get(), model->lead(), &rows);
  const int64_t batch = config.evaluation().batch_size();
  for (int64_t begin = 0; begin < dataset->size(); begin += batch) {
    RUBATO_RETURN_IF_ERROR(scorer.Score(begin, std::min(batch, dataset->size() - begin), out));
  }
  report.examples = dataset->size();
  return report;
}

}  // namespace rubato
