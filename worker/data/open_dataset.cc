#include "worker/data/open_dataset.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/cifar_dataset.h"
#include "worker/data/csv_dataset.h"
#include "worker/data/idx_dataset.h"
#include "worker/data/teacher_dataset.h"
#include "worker/data/text_dataset.h"

namespace rubato::worker {
namespace {

using DatasetOr = absl::StatusOr<std::shared_ptr<const Dataset>>;

absl::Status Missing(absl::string_view field) {
  return absl::FailedPreconditionError(absl::StrCat(field, " is not set; this task needs its examples"));
}

DatasetOr OpenIdx(const v1::IdxData& idx, const ModelSpec& model, bool test) {
  const IdxOptions options = {.images = test ? idx.test_images() : idx.train_images(),
                              .labels = test ? idx.test_labels() : idx.train_labels(),
                              .mean = idx.mean(),
                              .standard_deviation = idx.standard_deviation()};
  if (options.images.empty()) return Missing(test ? "data.idx.test_images" : "data.idx.train_images");
  if (options.labels.empty()) return Missing(test ? "data.idx.test_labels" : "data.idx.train_labels");
  return OpenIdxDataset(options, model);
}

DatasetOr OpenCsv(const v1::CsvData& csv, const ModelSpec& model, bool test) {
  const CsvOptions options = {
      .path = test ? csv.test_path() : csv.train_path(), .label_column = csv.label_column(), .header = csv.header()};
  if (options.path.empty()) return Missing(test ? "data.csv.test_path" : "data.csv.train_path");
  return OpenCsvDataset(options, model);
}

DatasetOr OpenTeacher(const v1::JobConfig& config, const ModelSpec& model, bool test) {
  const v1::TeacherData& teacher = config.data().teacher();
  const TeacherOptions options = {.seed = config.seed(),
                                  .examples = test ? teacher.test_examples() : teacher.train_examples(),
                                  .hidden_units = teacher.hidden_units(),
                                  .noise = teacher.noise(),
                                  .test = test};
  if (options.examples < 1) return Missing(test ? "data.teacher.test_examples" : "data.teacher.train_examples");
  return MakeTeacherDataset(options, model);
}

DatasetOr OpenCifar(const v1::CifarData& cifar, const ModelSpec& model, bool test) {
  const auto& paths = test ? cifar.test_paths() : cifar.train_paths();
  if (paths.empty()) return Missing(test ? "data.cifar.test_paths" : "data.cifar.train_paths");
  CifarOptions options = {.paths = {paths.begin(), paths.end()}};
  for (int channel = 0; channel < 3; ++channel) {
    options.mean[channel] = cifar.mean(cifar.mean_size() == 1 ? 0 : channel);
    options.standard_deviation[channel] = cifar.standard_deviation(cifar.standard_deviation_size() == 1 ? 0 : channel);
  }
  return OpenCifarDataset(options, model);
}

DatasetOr OpenText(const v1::TextData& text, const ModelSpec& model, bool test) {
  if (text.path().empty()) return Missing("data.text.path");
  if (test && text.test_fraction() == 0) return Missing("data.text.test_fraction");
  return OpenTextDataset({.path = text.path(), .test_fraction = text.test_fraction(), .test = test}, model);
}

DatasetOr Open(const v1::JobConfig& config, const ModelSpec& model, bool test) {
  const v1::DataConfig& data = config.data();
  // A label in a file is one number.
  if (!data.has_teacher() && model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR && NumElements(model.output) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("model.loss: MEAN_SQUARED_ERROR with ", NumElements(model.output),
                                                   " outputs; allowed: 1 output where the data is read from files"));
  }
  switch (data.source_case()) {
    case v1::DataConfig::kIdx:
      return OpenIdx(data.idx(), model, test);
    case v1::DataConfig::kCsv:
      return OpenCsv(data.csv(), model, test);
    case v1::DataConfig::kTeacher:
      return OpenTeacher(config, model, test);
    case v1::DataConfig::kCifar:
      return OpenCifar(data.cifar(), model, test);
    case v1::DataConfig::kText:
      return OpenText(data.text(), model, test);
    case v1::DataConfig::SOURCE_NOT_SET:
      break;
  }
  return Missing("data.idx, data.csv, data.teacher, data.cifar or data.text");
}

}  // namespace

DatasetOr OpenDataset(const v1::JobConfig& config, const ModelSpec& model, Split split) {
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> dataset, Open(config, model, split == Split::kTest));
  const int64_t labels = model.labels_per_example();
  if (dataset->label_kind() == LabelKind::kClasses && dataset->labels_per_example() != labels) {
    return absl::InvalidArgumentError(absl::StrCat("model.layers: the model has ", labels,
                                                   " labels per example and the data ", dataset->labels_per_example()));
  }
  return dataset;
}

}  // namespace rubato::worker
