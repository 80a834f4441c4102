#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/config/validate_parts.h"
#include "common/key_places.h"

namespace rubato {
namespace {

void ValidateFeature(const std::string& path, const v1::FeatureColumn& feature, ErrorList* errors) {
  errors->CheckNotEmpty(absl::StrCat(path, ".column"), feature.column(), "the name of a column");
  errors->CheckNumber(absl::StrCat(path, ".mean"), feature.mean(), true, "a finite number");
  const double deviation = feature.standard_deviation();
  errors->CheckNumber(absl::StrCat(path, ".standard_deviation"), deviation, deviation > 0, "a number > 0");
}

void ValidateKeyColumns(const std::string& path, const v1::KeyColumns& entry, ErrorList* errors) {
  if (entry.columns().empty()) errors->Add(absl::StrCat(path, ".columns"), "empty", "one column, or those of a cross");
  for (int i = 0; i < entry.columns_size(); ++i) {
    errors->CheckNotEmpty(absl::StrCat(path, ".columns[", i, "]"), entry.columns(i), "the name of a column");
  }
  errors->CheckNumber(absl::StrCat(path, ".bucket"), entry.bucket(), entry.bucket() >= 0, "a number >= 0");
  if (!IsText(entry)) return;
  const absl::string_view text = entry.words() ? "words" : "byte_pairs";
  if (entry.words() && entry.byte_pairs()) {
    errors->Add(absl::StrCat(path, ".byte_pairs"), "true", "false with words");
  }
  if (entry.columns_size() > 1) {
    errors->Add(absl::StrCat(path, ".columns"), absl::StrCat(entry.columns_size(), " columns"),
                absl::StrCat("1 with ", text));
  }
  if (entry.bucket() > 0) {
    errors->Add(absl::StrCat(path, ".bucket"), NumberText(entry.bucket()), absl::StrCat("absent with ", text));
  }
}

}  // namespace

void ValidateColumns(const ModelSpec* model, const v1::ColumnsData& columns, bool evaluates, ErrorList* errors) {
  ValidatePaths("data.columns.train_paths", columns.train_paths(), true, "one path or more", errors);
  ValidatePaths("data.columns.test_paths", columns.test_paths(), evaluates,
                "one path or more, because cluster.evaluators is 1", errors);
  const std::string& separator = columns.separator();
  if (separator.size() != 1 || !absl::ascii_isascii(separator[0]) || separator.find_first_of("\"\r\n") == 0) {
    errors->Add("data.columns.separator", absl::StrCat("\"", absl::CHexEscape(separator), "\""),
                "one ASCII character, and no quote or line end");
  }
  errors->CheckNotEmpty("data.columns.label", columns.label(), "the name of a column");
  errors->CheckNumber("data.columns.label_over", columns.label_over(), true, "a finite number");
  for (int i = 0; i < columns.features_size(); ++i) {
    ValidateFeature(absl::StrCat("data.columns.features[", i, "]"), columns.features(i), errors);
  }
  for (int i = 0; i < columns.keys_size(); ++i) {
    ValidateKeyColumns(absl::StrCat("data.columns.keys[", i, "]"), columns.keys(i), errors);
  }
  const bool has_pairs = std::any_of(columns.keys().begin(), columns.keys().end(),
                                     [](const v1::KeyColumns& entry) { return entry.byte_pairs(); });
  if (has_pairs) {
    errors->CheckNotEmpty("data.columns.byte_pairs", columns.byte_pairs(),
                          "the path of what rubato byte-pairs wrote, because an entry of keys has byte_pairs");
  } else if (!columns.byte_pairs().empty()) {
    errors->Add("data.columns.byte_pairs", columns.byte_pairs(), "absent, because no entry of keys has byte_pairs");
  }
  if (model == nullptr) return;
  if (NumElements(model->features) != columns.features_size()) {
    errors->Add("data.columns.features", absl::StrCat(columns.features_size(), " columns"),
                absl::StrCat(NumElements(model->features), ", as many as model.input_shape says"));
  }
  if (const auto places = PlacesOfKeys(columns, model->tables); !places.ok()) {
    errors->AddLines(places.status().message());
  }
}

}  // namespace rubato
