#include "worker/data/open_dataset.h"

#include "absl/strings/str_cat.h"
#include "worker/data/csv_dataset.h"
#include "worker/data/idx_dataset.h"
#include "worker/data/teacher_dataset.h"

namespace rubato {
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

}  // namespace

DatasetOr OpenDataset(const v1::JobConfig& config, const ModelSpec& model, Split split) {
  const bool test = split == Split::kTest;
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
    case v1::DataConfig::SOURCE_NOT_SET:
      break;
  }
  return Missing("data.idx, data.csv or data.teacher");
}

}  // namespace rubato
