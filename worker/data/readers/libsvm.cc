#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "worker/data/readers/readers.h"
#include "worker/data/record_files.h"
#include "worker/data/shown_field.h"

namespace rubato::worker {
namespace {

// Where an example goes; keys, their number and weights are of the model's first table, and null if it has none.
struct ExampleMemory {
  float* features = nullptr;
  double* label = nullptr;
  uint64_t* keys = nullptr;
  float* key_weights = nullptr;
  int64_t* key_count = nullptr;
};

// Takes the fields of a line one after another, which spaces and tabs stand between.
class LineFields {
 public:
  explicit LineFields(absl::string_view line) : rest_(line.substr(0, line.find('#'))) {}

  // Absent after the last one.
  std::optional<absl::string_view> Next() {
    const size_t begin = rest_.find_first_not_of(kSpaces);
    if (begin == absl::string_view::npos) return std::nullopt;
    rest_.remove_prefix(begin);
    const absl::string_view field = rest_.substr(0, rest_.find_first_of(kSpaces));
    rest_.remove_prefix(field.size());
    return field;
  }

 private:
  static constexpr char kSpaces[] = " \t";
  absl::string_view rest_;
};

// Digits alone, where SimpleAtoi takes signs.
bool ParseDigits(absl::string_view text, uint64_t* number) {
  return std::all_of(text.begin(), text.end(), absl::ascii_isdigit) && absl::SimpleAtoi(text, number);
}

// Of a field behind the label, counted from 1; qid counts.
absl::Status BadField(int64_t number, absl::string_view field, absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("field ", number, ": value ", ShownField(field), "; allowed: ", allowed));
}

// What config and model say of a line. Thread-safe.
class LibsvmFormat {
 public:
  LibsvmFormat(const v1::LibsvmData& config, const ModelSpec& model)
      : label_over_(config.has_label_over() ? std::optional<double>(config.label_over()) : std::nullopt),
        first_key_(config.first_key()),
        classes_(model.has_classes() ? model.classes() : 0),
        features_(static_cast<uint64_t>(NumElements(model.features))),
        has_tables_(!model.tables.empty()) {
    for (size_t table = 0; table < model.tables.size(); ++table) {
      const int64_t keys = model.tables[table].keys_per_example();
      if (table > 0 && keys >= most_keys_) continue;
      most_keys_ = keys;
      whose_most_ = absl::StrCat("model.tables[", table, "] (", model.tables[table].config.name(), ")");
    }
  }

  absl::Status Parse(absl::string_view line, const ExampleMemory& out) const {
    LineFields fields(line);
    RUBATO_RETURN_IF_ERROR(ParseLabel(fields.Next().value_or(""), out.label));
    std::fill_n(out.features, features_, 0.0f);
    std::optional<uint64_t> before;
    int64_t keys = 0, number = 0;
    while (const std::optional<absl::string_view> field = fields.Next()) {
      if (++number == 1 && IsQueryId(*field)) continue;
      uint64_t index = 0;
      float value = 0;
      RUBATO_RETURN_IF_ERROR(ParseField(number, *field, before, &index, &value));
      before = index;
      if (index >= 1 && index <= features_) out.features[index - 1] = value;
      if (!has_tables_ || index < first_key_ || value == 0) continue;
      if (keys == most_keys_) return TooManyKeys(number, *field);
      out.keys[keys] = index;
      out.key_weights[keys++] = value;
    }
    if (has_tables_) *out.key_count = keys;
    return absl::OkStatus();
  }

 private:
  // Of the lines that a ranking is made of, which are examples by themselves here.
  static bool IsQueryId(absl::string_view field) {
    uint64_t id = 0;
    return absl::ConsumePrefix(&field, "qid:") && ParseDigits(field, &id);
  }

  absl::Status ParseLabel(absl::string_view field, double* label) const {
    const bool is_number = absl::SimpleAtod(field, label) && std::isfinite(static_cast<float>(*label));
    if (is_number && label_over_.has_value()) *label = *label > *label_over_ ? 1 : 0;
    const bool is_class = *label >= 0 && *label < static_cast<double>(classes_) && *label == std::floor(*label);
    if (is_number && (classes_ == 0 || is_class)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the label: value ", ShownField(field), "; allowed: ",
                     classes_ == 0 || label_over_.has_value()
                         ? "a number"
                         : absl::StrCat("a class from 0 to ", classes_ - 1,
                                        classes_ == 2 ? " (data.libsvm.label_over makes them of -1 and 1)" : "")));
  }

  absl::Status ParseField(int64_t number, absl::string_view field, const std::optional<uint64_t>& before,
                          uint64_t* index, float* value) const {
    const size_t colon = field.find(':');
    double parsed = 0;
    const bool is_pair = colon != absl::string_view::npos && ParseDigits(field.substr(0, colon), index) &&
                         absl::SimpleAtod(field.substr(colon + 1), &parsed);
    *value = static_cast<float>(parsed);
    if (!is_pair || !std::isfinite(*value)) {
      return BadField(number, field, "INDEX:VALUE, a whole number from 0 to 2^64-1 and a number of at most 3.4e38");
    }
    if (before.has_value() && *index <= *before) {
      return BadField(number, field, absl::StrCat("an index over ", *before, ", that of the field before"));
    }
    if (!has_tables_ && (*index < 1 || *index > features_)) {
      return BadField(number, field, absl::StrCat("an index from 1 to ", features_, ", as model.input_shape says"));
    }
    if (has_tables_ && *index < first_key_ && (*index < 1 || *index > features_)) {
      return BadField(number, field,
                      absl::StrCat("an index from 1 to ", features_, ", as model.input_shape says, or from ",
                                   first_key_, " on, as data.libsvm.first_key says"));
    }
    return absl::OkStatus();
  }

  absl::Status TooManyKeys(int64_t number, absl::string_view field) const {
    return BadField(number, field,
                    absl::StrCat("the end of the line, as it has ", most_keys_,
                                 " keys before, the keys_per_example of ", whose_most_));
  }

  const std::optional<double> label_over_;
  const uint64_t first_key_;
  // 0: labels are numbers.
  const int64_t classes_;
  const uint64_t features_;
  const bool has_tables_;
  // Of the table that takes the fewest, and its name.
  int64_t most_keys_ = 0;
  std::string whose_most_;
};

class LibsvmDataset : public Dataset {
 public:
  LibsvmDataset(Properties properties, std::vector<int64_t> keys_of_tables, LibsvmFormat format,
                std::unique_ptr<const RecordFiles> files)
      : Dataset(std::move(properties)),
        keys_of_tables_(std::move(keys_of_tables)),
        format_(std::move(format)),
        files_(std::move(files)) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                            uint64_t*, uint32_t*) const override {
    return ReadWeightedExamples(indices, n, inputs, classes, targets, nullptr, nullptr, nullptr);
  }

  absl::Status ReadWeightedExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                                    uint64_t* keys, uint32_t* key_counts, float* key_weights) const override {
    std::vector<uint8_t> scratch;
    double label = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      RUBATO_ASSIGN_OR_RETURN(const RecordFiles::Record record, files_->Read(indices[i], &scratch));
      const ExampleMemory out = {.features = inputs + i * input_elements(),
                                 .label = &label,
                                 .keys = keys,
                                 .key_weights = key_weights,
                                 .key_count = &count};
      if (!format_.Parse(record.text, out).ok()) return files_->Changed(indices[i]);
      if (label_kind() == LabelKind::kClasses) {
        classes[i] = static_cast<int32_t>(label);
      } else {
        targets[i] = static_cast<float>(label);
      }
      if (keys_of_tables_.empty()) continue;
      CopyToOtherTables(count, keys, key_weights);
      key_counts = std::fill_n(key_counts, keys_of_tables_.size(), static_cast<uint32_t>(count));
      keys += keys_per_example();
      key_weights += keys_per_example();
    }
    return absl::OkStatus();
  }

  // All tables have the same keys, those of the first.
  void CopyToOtherTables(int64_t count, uint64_t* keys, float* key_weights) const {
    int64_t first = keys_of_tables_[0];
    for (size_t table = 1; table < keys_of_tables_.size(); ++table) {
      std::copy_n(keys, count, keys + first);
      std::copy_n(key_weights, count, key_weights + first);
      first += keys_of_tables_[table];
    }
  }

  // How many places each table has.
  const std::vector<int64_t> keys_of_tables_;
  const LibsvmFormat format_;
  const std::unique_ptr<const RecordFiles> files_;
};

absl::Status CheckModel(const ModelSpec& model) {
  for (size_t table = 0; table < model.tables.size(); ++table) {
    const v1::TableConfig& config = model.tables[table].config;
    if (config.has_combine() && config.combine() == v1::TableConfig::SUM) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("model.tables[", table, "].combine: value ",
                     config.has_combine() ? v1::TableConfig::Combine_Name(config.combine()) : "absent",
                     "; allowed: SUM, with data.libsvm, whose values the rows are multiplied with"));
  }
  return absl::OkStatus();
}

}  // namespace

// Files in the format of LIBSVM: a label, and indices with values that are not 0. Lines are checked when a file is
// opened, and parsed again whenever they are read. Beside its text, which is in memory or on the disk, a file takes a
// byte of memory for each example. Errors are "<path>:<line>: ..." with the field.
DatasetOr OpenLibsvm(const ReaderRequest& request) {
  const v1::LibsvmData& config = request.config.data().libsvm();
  const ModelSpec& model = request.model;
  const auto& paths = request.test ? config.test_paths() : config.train_paths();
  if (paths.empty()) return MissingSource(request.test ? "data.libsvm.test_paths" : "data.libsvm.train_paths");
  RUBATO_RETURN_IF_ERROR(CheckModel(model));
  LibsvmFormat format(config, model);

  std::vector<float> features(NumElements(model.features));
  std::vector<uint64_t> keys(model.keys_per_example());
  std::vector<float> key_weights(model.keys_per_example());
  double label = 0;
  int64_t key_count = 0;
  const ExampleMemory unused = {.features = features.data(),
                                .label = &label,
                                .keys = keys.data(),
                                .key_weights = key_weights.data(),
                                .key_count = &key_count};
  RUBATO_ASSIGN_OR_RETURN(
      auto files,
      RecordFiles::Open({paths.begin(), paths.end()}, {.expected = "a label and index:value"}, request.memory_bytes(),
                        [&](const RecordFiles::Record& record) { return format.Parse(record.text, unused); }));

  std::vector<int64_t> keys_of_tables;
  for (const TableSpec& table : model.tables) keys_of_tables.push_back(table.keys_per_example());
  const bool targets = !model.has_classes();
  Dataset::Properties properties = {.size = files->size(),
                                    .input_shape = model.features,
                                    .label_kind = targets ? LabelKind::kTargets : LabelKind::kClasses,
                                    .target_elements = targets ? 1 : 0,
                                    .keys_per_example = model.keys_per_example(),
                                    .key_counts_per_example = static_cast<int64_t>(model.tables.size()),
                                    .has_key_weights = !model.tables.empty()};
  return std::make_shared<const LibsvmDataset>(std::move(properties), std::move(keys_of_tables), std::move(format),
                                               std::move(files));
}

}  // namespace rubato::worker
