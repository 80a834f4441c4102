#include "absl/strings/str_cat.h"
#include "common/config/validate_parts.h"

namespace rubato {

void ValidateLibsvm(const ModelSpec* model, const v1::LibsvmData& libsvm, bool evaluates, ErrorList* errors) {
  ValidatePaths("data.libsvm.train_paths", libsvm.train_paths(), true, "one path or more", errors);
  ValidatePaths("data.libsvm.test_paths", libsvm.test_paths(), evaluates,
                "one path or more, because cluster.evaluators is 1", errors);
  errors->CheckNumber("data.libsvm.label_over", libsvm.label_over(), true, "a finite number");
  if (model == nullptr) return;
  // No index is to be left out.
  const auto most = static_cast<uint64_t>(NumElements(model->features)) + 1;
  const uint64_t first = libsvm.first_key();
  if (model->tables.empty() && first > 0) {
    errors->Add("data.libsvm.first_key", absl::StrCat(first), "absent without model.tables");
  } else if (first > most) {
    errors->Add("data.libsvm.first_key", absl::StrCat(first),
                absl::StrCat("0 to ", most, ", as the indices before are the features of model.input_shape"));
  }
  for (size_t table = 0; table < model->tables.size(); ++table) {
    const v1::TableConfig& config = model->tables[table].config;
    if (config.has_combine() && config.combine() == v1::TableConfig::SUM) continue;
    errors->Add(absl::StrCat("model.tables[", table, "].combine"),
                config.has_combine() ? v1::TableConfig::Combine_Name(config.combine()) : "absent",
                "SUM, with data.libsvm, whose values the rows are multiplied with");
  }
}

}  // namespace rubato
