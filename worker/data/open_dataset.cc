#include "worker/data/open_dataset.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/data/readers/readers.h"

namespace rubato::worker {

DatasetOr OpenDataset(const v1::JobConfig& config, const ModelSpec& model, Split split) {
  // A label in a file is one number.
  if (!config.data().has_teacher() && model.loss == v1::ModelConfig::MEAN_SQUARED_ERROR &&
      NumElements(model.output) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("model.loss: MEAN_SQUARED_ERROR with ", NumElements(model.output),
                                                   " outputs; allowed: 1 output if the data is read from files"));
  }
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> dataset,
                          OpenSource({.config = config, .model = model, .test = split == Split::kTest}));
  const int64_t labels = model.labels_per_example();
  if (dataset->label_kind() == LabelKind::kClasses && dataset->labels_per_example() != labels) {
    return absl::InvalidArgumentError(absl::StrCat("model.layers: the model has ", labels,
                                                   " labels per example and the data ", dataset->labels_per_example()));
  }
  if (dataset->keys_per_example() != model.keys_per_example()) {
    return absl::InvalidArgumentError(absl::StrCat("model.tables: the model has ", model.keys_per_example(),
                                                   " keys per example and the data ", dataset->keys_per_example()));
  }
  return dataset;
}

}  // namespace rubato::worker
