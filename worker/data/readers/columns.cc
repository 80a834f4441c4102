#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/key_places.h"
#include "common/status.h"
#include "worker/data/byte_pairs/byte_pairs.h"
#include "worker/data/column_keys.h"
#include "worker/data/readers/readers.h"
#include "worker/data/record_files.h"
#include "worker/data/separated_fields.h"
#include "worker/data/shown_field.h"

namespace rubato::worker {
namespace {

// Where the columns that are wanted stand in a file.
struct FileColumns {
  size_t count = 0;
  size_t label = 0;
  std::vector<size_t> features;
  // By entry.
  std::vector<std::vector<size_t>> keys;
};

// Where an example goes.
struct ExampleMemory {
  float* features = nullptr;
  double* label = nullptr;
  uint64_t* keys = nullptr;
  // By table, starting with 0.
  uint32_t* key_counts = nullptr;
};

// What the config says of a line of text. Thread-safe.
class ColumnsFormat {
 public:
  ColumnsFormat(v1::ColumnsData config, const ModelSpec& model, std::vector<KeyPlace> places,
                std::optional<BytePairs> pairs)
      : config_(std::move(config)),
        classes_(model.has_classes() ? model.classes() : 0),
        tables_(model.tables),
        places_(std::move(places)),
        pairs_(std::move(pairs)) {}

  char separator() const { return config_.separator()[0]; }
  size_t features() const { return static_cast<size_t>(config_.features_size()); }
  size_t tables() const { return tables_.size(); }
  bool is_ragged() const { return std::any_of(config_.keys().begin(), config_.keys().end(), IsText); }

  absl::StatusOr<FileColumns> FindColumns(absl::string_view header) const {
    SeparatedFields header_fields(separator());
    RUBATO_RETURN_IF_ERROR(header_fields.SplitHeader(header));
    const std::vector<absl::string_view>& names = header_fields.fields();
    FileColumns columns = {.count = names.size()};
    RUBATO_ASSIGN_OR_RETURN(columns.label, FindColumn(names, config_.label()));
    for (const v1::FeatureColumn& feature : config_.features()) {
      RUBATO_ASSIGN_OR_RETURN(const size_t at, FindColumn(names, feature.column()));
      columns.features.push_back(at);
    }
    for (const v1::KeyColumns& entry : config_.keys()) {
      std::vector<size_t>& places = columns.keys.emplace_back();
      for (const std::string& name : entry.columns()) {
        RUBATO_ASSIGN_OR_RETURN(const size_t at, FindColumn(names, name));
        places.push_back(at);
      }
    }
    return columns;
  }

  absl::Status Parse(const FileColumns& columns, absl::string_view record, SeparatedFields* fields,
                     const ExampleMemory& out) const {
    RUBATO_RETURN_IF_ERROR(fields->Split(record));
    const std::vector<absl::string_view>& values = fields->fields();
    if (values.size() != columns.count) {
      return absl::InvalidArgumentError(
          absl::StrCat(values.size(), " columns; expected: ", columns.count, ", as in the first line"));
    }
    RUBATO_RETURN_IF_ERROR(ParseLabel(values[columns.label], out.label));
    for (int i = 0; i < config_.features_size(); ++i) {
      RUBATO_RETURN_IF_ERROR(ParseFeature(config_.features(i), values[columns.features[i]], out.features + i));
    }
    std::fill_n(out.key_counts, tables_.size(), 0);
    for (const KeyPlace& place : places_) {
      const v1::KeyColumns& entry = config_.keys(place.entry);
      const std::vector<size_t>& at = columns.keys[place.entry];
      uint32_t* const count = out.key_counts + place.table;
      if (IsText(entry)) {
        RUBATO_RETURN_IF_ERROR(ParseText(place, values[at[0]], out.keys + place.first, count));
      } else {
        RUBATO_RETURN_IF_ERROR(ParseKey(place.entry, at, values, out.keys + place.first));
        ++*count;
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status BadField(absl::string_view column, absl::string_view field, absl::string_view allowed) {
    return absl::InvalidArgumentError(
        absl::StrCat("column \"", column, "\": value ", ShownField(field), "; allowed: ", allowed));
  }

  absl::Status ParseLabel(absl::string_view field, double* label) const {
    const bool is_number = absl::SimpleAtod(field, label) && std::isfinite(static_cast<float>(*label));
    if (is_number && config_.has_label_over()) *label = *label > config_.label_over() ? 1 : 0;
    const bool is_class = *label >= 0 && *label < static_cast<double>(classes_) && *label == std::floor(*label);
    if (is_number && (classes_ == 0 || is_class)) return absl::OkStatus();
    return BadField(config_.label(), field,
                    classes_ == 0 || config_.has_label_over()
                        ? "a number, the label"
                        : absl::StrCat("a class from 0 to ", classes_ - 1, ", the label"));
  }

  static absl::Status ParseFeature(const v1::FeatureColumn& feature, absl::string_view field, float* value) {
    *value = 0;
    if (field.empty()) return absl::OkStatus();
    double number = 0;
    const bool is_number = absl::SimpleAtod(field, &number) && std::isfinite(number);
    if (!is_number || (feature.log1p() && number < 0)) {
      return BadField(feature.column(), field, feature.log1p() ? "a number >= 0, or nothing" : "a number, or nothing");
    }
    if (feature.log1p()) number = std::log1p(number);
    *value = static_cast<float>((number - feature.mean()) / feature.standard_deviation());
    if (std::isfinite(*value)) return absl::OkStatus();
    return BadField(feature.column(), field, "a number whose feature is at most 3.4e38");
  }

  absl::Status ParseKey(int number, const std::vector<size_t>& at, const std::vector<absl::string_view>& values,
                        uint64_t* key) const {
    const v1::KeyColumns& entry = config_.keys(number);
    ColumnKey hash(number);
    for (int i = 0; i < entry.columns_size(); ++i) {
      const absl::string_view field = values[at[i]];
      if (entry.bucket() == 0 || field.empty()) {
        hash.Add(field);
        continue;
      }
      const std::optional<int64_t> bucket = BucketOf(field, entry.bucket());
      if (!bucket.has_value()) {
        return BadField(entry.columns(i), field,
                        absl::StrCat("a number of at most 2^63 buckets of ", entry.bucket(), ", or nothing"));
      }
      hash.AddBucket(*bucket);
    }
    *key = hash.Finish();
    return absl::OkStatus();
  }

  absl::Status ParseText(const KeyPlace& place, absl::string_view text, uint64_t* keys, uint32_t* count) const {
    const v1::KeyColumns& entry = config_.keys(place.entry);
    int64_t units = 0;
    const auto add = [&](absl::string_view unit) {
      if (units++ >= place.places) return;
      ColumnKey hash(place.entry);
      hash.Add(unit);
      *keys++ = hash.Finish();
    };
    if (entry.words()) {
      ForEachWord(text, add);
    } else {
      pairs_->Encode(text, [&](uint32_t token) { add(pairs_->bytes(token)); });
    }
    if (units > place.places) {
      return absl::InvalidArgumentError(
          absl::StrCat("column \"", entry.columns(0), "\": ", units, entry.words() ? " words" : " byte pairs",
                       "; allowed: ", place.places, ", the keys_per_example of model.tables[", place.table, "] (",
                       tables_[place.table].config.name(), ")"));
    }
    *count = static_cast<uint32_t>(units);
    return absl::OkStatus();
  }

  const v1::ColumnsData config_;
  // 0: labels are numbers.
  const int64_t classes_;
  const std::vector<TableSpec> tables_;
  const std::vector<KeyPlace> places_;
  // If an entry has byte_pairs.
  const std::optional<BytePairs> pairs_;
};

class ColumnsDataset : public Dataset {
 public:
  ColumnsDataset(Properties properties, std::unique_ptr<const ColumnsFormat> format, std::vector<FileColumns> columns,
                 std::unique_ptr<const RecordFiles> files)
      : Dataset(std::move(properties)),
        format_(std::move(format)),
        columns_(std::move(columns)),
        files_(std::move(files)) {}

 private:
  absl::Status ReadExamples(const int64_t* indices, int64_t n, float* inputs, int32_t* classes, float* targets,
                            uint64_t* keys, uint32_t* key_counts) const override {
    std::vector<uint8_t> scratch;
    SeparatedFields fields(format_->separator());
    std::vector<uint32_t> counts(format_->tables());
    double label = 0;
    for (int64_t i = 0; i < n; ++i) {
      RUBATO_ASSIGN_OR_RETURN(const RecordFiles::Record record, files_->Read(indices[i], &scratch));
      const ExampleMemory out = {.features = inputs + i * input_elements(),
                                 .label = &label,
                                 .keys = keys + i * keys_per_example(),
                                 .key_counts = counts.data()};
      if (!format_->Parse(columns_[record.file], record.text, &fields, out).ok()) return files_->Changed(indices[i]);
      if (label_kind() == LabelKind::kClasses) {
        classes[i] = static_cast<int32_t>(label);
      } else {
        targets[i] = static_cast<float>(label);
      }
      std::copy_n(counts.begin(), key_counts_per_example(), key_counts + i * key_counts_per_example());
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<const ColumnsFormat> format_;
  // By file.
  const std::vector<FileColumns> columns_;
  const std::unique_ptr<const RecordFiles> files_;
};

absl::Status CheckModel(const ModelSpec& model, const v1::ColumnsData& columns) {
  if (NumElements(model.features) == columns.features_size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("data.columns.features: ", columns.features_size(), "; expected: ",
                                                 NumElements(model.features), ", as model.input_shape says"));
}

}  // namespace

// Files of text in columns, whose first line has their names; each file may have them in another order. Lines are
// checked when a file is opened, and parsed again whenever they are read. Beside its text, which is in memory or on the
// disk, a file takes a byte of memory for each example. Errors are "<path>:<line>: ..." with the column's name.
DatasetOr OpenColumns(const ReaderRequest& request) {
  const v1::ColumnsData& config = request.config.data().columns();
  const auto& paths = request.test ? config.test_paths() : config.train_paths();
  if (paths.empty()) return MissingSource(request.test ? "data.columns.test_paths" : "data.columns.train_paths");
  RUBATO_RETURN_IF_ERROR(CheckModel(request.model, config));
  RUBATO_ASSIGN_OR_RETURN(std::vector<KeyPlace> places, PlacesOfKeys(config, request.model.tables));
  std::optional<BytePairs> pairs;
  if (!config.byte_pairs().empty()) {
    RUBATO_ASSIGN_OR_RETURN(pairs, BytePairs::Load(config.byte_pairs()));
  }
  auto format = std::make_unique<const ColumnsFormat>(config, request.model, std::move(places), std::move(pairs));
  const char separator = format->separator();

  std::vector<FileColumns> columns;
  SeparatedFields fields(separator);
  std::vector<float> features(format->features());
  std::vector<uint64_t> keys(request.model.keys_per_example());
  std::vector<uint32_t> counts(format->tables());
  double label = 0;
  const ExampleMemory unused = {
      .features = features.data(), .label = &label, .keys = keys.data(), .key_counts = counts.data()};
  const auto check = [&](const RecordFiles::Record& record) -> absl::Status {
    if (record.file < columns.size()) return format->Parse(columns[record.file], record.text, &fields, unused);
    RUBATO_ASSIGN_OR_RETURN(FileColumns found, format->FindColumns(record.text));
    columns.push_back(std::move(found));
    return absl::OkStatus();
  };
  RecordFiles::Format records = {.header = true, .expected = "columns, and quotes that end"};
  records.length = [separator](absl::string_view text) { return SeparatedRecordLength(text, separator); };
  RUBATO_ASSIGN_OR_RETURN(
      auto files, RecordFiles::Open({paths.begin(), paths.end()}, std::move(records), request.memory_bytes(), check));

  const bool targets = !request.model.has_classes();
  Dataset::Properties properties = {
      .size = files->size(),
      .input_shape = request.model.features,
      .label_kind = targets ? LabelKind::kTargets : LabelKind::kClasses,
      .target_elements = targets ? 1 : 0,
      .keys_per_example = request.model.keys_per_example(),
      .key_counts_per_example = format->is_ragged() ? static_cast<int64_t>(format->tables()) : 0};
  return std::make_shared<const ColumnsDataset>(std::move(properties), std::move(format), std::move(columns),
                                                std::move(files));
}

}  // namespace rubato::worker
