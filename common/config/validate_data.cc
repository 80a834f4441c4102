#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/config/validate_parts.h"

namespace rubato {
namespace {

constexpr int64_t kMaxExamples = std::numeric_limits<int32_t>::max();
// Weights of the teacher network, which every worker and evaluator holds: 1 GiB.
constexpr int64_t kMaxTeacherWeights = int64_t{1} << 28;

constexpr char kTestRequired[] = "a path, because cluster.evaluators is 1";

void ValidateIdx(const v1::IdxData& idx, bool evaluates, ErrorList* errors) {
  errors->CheckNotEmpty("data.idx.train_images", idx.train_images(), "a path");
  errors->CheckNotEmpty("data.idx.train_labels", idx.train_labels(), "a path");
  const bool images = !idx.test_images().empty();
  const bool labels = !idx.test_labels().empty();
  if (!images && (labels || evaluates)) {
    errors->Add("data.idx.test_images", "empty",
                labels ? "a path, because data.idx.test_labels is set" : kTestRequired);
  }
  if (!labels && (images || evaluates)) {
    errors->Add("data.idx.test_labels", "empty",
                images ? "a path, because data.idx.test_images is set" : kTestRequired);
  }
  errors->CheckNumber("data.idx.mean", idx.mean(), true, "a finite number");
  errors->CheckNumber("data.idx.standard_deviation", idx.standard_deviation(), idx.standard_deviation() > 0,
                      "a number > 0");
}

void ValidateCsv(const ModelSpec* model, const v1::CsvData& csv, bool evaluates, ErrorList* errors) {
  errors->CheckNotEmpty("data.csv.train_path", csv.train_path(), "a path");
  if (evaluates) errors->CheckNotEmpty("data.csv.test_path", csv.test_path(), kTestRequired);
  // One column is the label, the others fill the input.
  const int64_t highest = model == nullptr ? std::numeric_limits<int64_t>::max() : NumElements(model->input);
  errors->CheckInteger("data.csv.label_column", csv.label_column(), 0, highest);
}

void ValidateTeacher(const ModelSpec* model, const v1::TeacherData& teacher, bool evaluates, ErrorList* errors) {
  errors->CheckInteger("data.teacher.train_examples", teacher.train_examples(), 1, kMaxExamples);
  errors->CheckInteger("data.teacher.test_examples", teacher.test_examples(), evaluates ? 1 : 0, kMaxExamples);
  errors->CheckNumber("data.teacher.noise", teacher.noise(), teacher.noise() >= 0, "a number >= 0");
  errors->CheckInteger("data.teacher.hidden_units", teacher.hidden_units(), 1, 65536);
  if (model == nullptr || teacher.hidden_units() < 1) return;
  const int64_t widths = NumElements(model->input) + NumElements(model->output);
  if (teacher.hidden_units() > kMaxTeacherWeights / widths) {
    errors->Add("data.teacher.hidden_units", absl::StrCat(teacher.hidden_units()),
                absl::StrCat("1 to ", kMaxTeacherWeights / widths, " with the model's ", widths,
                             " inputs and outputs (at most 2^28 weights)"));
  }
}

void ValidateCriteo(const ModelSpec* model, const v1::CriteoData& criteo, bool evaluates, ErrorList* errors) {
  constexpr int64_t kFeatures = 13, kKeys = 26;
  ValidatePaths("data.criteo.train_paths", criteo.train_paths(), true, "one path or more", errors);
  ValidatePaths("data.criteo.test_paths", criteo.test_paths(), evaluates,
                "one path or more, because cluster.evaluators is 1", errors);
  if (model == nullptr) return;
  if (model->features != Shape{kFeatures}) {
    errors->Add("model.input_shape", ShapeText(model->features), "13, with data.criteo");
  }
  if (model->keys_per_example() != kKeys) {
    errors->Add("model.tables", absl::StrCat(model->keys_per_example(), " keys in an example"),
                "26 together, with data.criteo");
  }
}

void ValidateClicks(const v1::ClicksData& clicks, bool evaluates, ErrorList* errors) {
  errors->CheckInteger("data.clicks.train_examples", clicks.train_examples(), 1, kMaxExamples);
  errors->CheckInteger("data.clicks.test_examples", clicks.test_examples(), evaluates ? 1 : 0, kMaxExamples);
  errors->CheckInteger("data.clicks.keys", clicks.keys(), 1, int64_t{1} << 40);
  const double exponent = clicks.exponent();
  errors->CheckNumber("data.clicks.exponent", exponent, exponent > 0 && exponent <= 4, "over 0 to 4");
}

// Keys come with some sources alone, and only there. The classes are two. Columns and libsvm may have keys or not, and
// say so themselves.
void ValidateKeys(const ModelSpec* model, const v1::DataConfig& data, ErrorList* errors) {
  if (data.has_columns() || data.has_libsvm()) return;
  const bool has_keys = data.has_criteo() || data.has_clicks();
  if (model == nullptr || (!has_keys && model->tables.empty())) return;
  if (!has_keys) {
    errors->Add("model.tables", "present",
                "absent unless the source is data.criteo, data.clicks, data.columns or data.libsvm");
  } else if (model->tables.empty()) {
    errors->Add("model.tables", "empty", "one table or more, for the keys of data.criteo or data.clicks");
  }
  if (has_keys && !model->has_two_classes()) {
    errors->Add("model.layers", absl::StrCat("an output of ", ShapeText(model->output)),
                "BINARY_CROSS_ENTROPY, or SOFTMAX_CROSS_ENTROPY over 2 classes, with data.criteo or data.clicks");
  }
}

void ValidateCifar(const v1::CifarData& cifar, bool evaluates, ErrorList* errors) {
  ValidatePaths("data.cifar.train_paths", cifar.train_paths(), true, "one path or more", errors);
  ValidatePaths("data.cifar.test_paths", cifar.test_paths(), evaluates,
                "one path or more, because cluster.evaluators is 1", errors);
  const auto check_count = [&](absl::string_view field, int count) {
    if (count != 1 && count != 3) {
      errors->Add(field, absl::StrCat(count, " numbers"), "3 numbers, for red, green and blue, or 1 for all");
    }
  };
  check_count("data.cifar.mean", cifar.mean_size());
  check_count("data.cifar.standard_deviation", cifar.standard_deviation_size());
  for (int i = 0; i < cifar.mean_size(); ++i) {
    errors->CheckNumber(absl::StrCat("data.cifar.mean[", i, "]"), cifar.mean(i), true, "a finite number");
  }
  for (int i = 0; i < cifar.standard_deviation_size(); ++i) {
    const double deviation = cifar.standard_deviation(i);
    errors->CheckNumber(absl::StrCat("data.cifar.standard_deviation[", i, "]"), deviation, deviation > 0,
                        "a number > 0");
  }
}

void ValidateText(const ModelSpec* model, const v1::TextData& text, bool evaluates, ErrorList* errors) {
  errors->CheckNotEmpty("data.text.path", text.path(), "a path");
  const double fraction = text.test_fraction();
  errors->CheckNumber("data.text.test_fraction", fraction,
                      fraction >= 0 && fraction < 1 && (fraction > 0 || !evaluates),
                      evaluates ? "over 0 to under 1, because cluster.evaluators is 1" : "0 to under 1");
  if (model == nullptr) return;
  if (model->vocabulary < 256) {
    errors->Add("model.layers", absl::StrCat("a vocabulary of ", model->vocabulary),
                "an embedding of at least 256 tokens first, with data.text");
  }
  if (model->loss != v1::ModelConfig::SOFTMAX_CROSS_ENTROPY || model->output.size() != 2 ||
      model->output[0] != model->input[0] || model->output[1] < 256) {
    errors->Add("model.layers", absl::StrCat("an output of ", ShapeText(model->output)),
                absl::StrCat("SOFTMAX_CROSS_ENTROPY over ", model->input[0],
                             " positions of at least 256 classes, with data.text"));
  }
}

// What is leased are positions in an epoch's order.
constexpr int64_t kMaxClientExamples = int64_t{1} << 40;

void ValidateClient(const v1::JobConfig& config, ErrorList* errors) {
  const v1::DataConfig& data = config.data();
  if (!config.model().has_manifest()) {
    errors->Add("data.client", "present", "absent unless the model is a model.manifest");
  }
  const int64_t examples = data.client().train_examples();
  if (data.dispatch() == v1::DataConfig::OWN) {
    if (examples != 0) {
      errors->Add("data.client.train_examples", absl::StrCat(examples), "absent if data.dispatch is OWN");
    }
    if (data.has_shard_examples()) {
      errors->Add("data.shard_examples", absl::StrCat(data.shard_examples()), "absent if data.dispatch is OWN");
    }
  } else {
    errors->CheckInteger("data.client.train_examples", examples, 1, kMaxClientExamples);
  }
}

void ValidateDispatch(const v1::DataConfig& data, ErrorList* errors) {
  const v1::DataConfig::Dispatch dispatch = data.dispatch();
  const bool good = dispatch == v1::DataConfig::DYNAMIC ||
                    dispatch == (data.has_client() ? v1::DataConfig::OWN : v1::DataConfig::STATIC);
  if (good) return;
  const bool named = v1::DataConfig::Dispatch_IsValid(dispatch) && dispatch != v1::DataConfig::DISPATCH_UNSPECIFIED;
  errors->Add("data.dispatch",
              named ? v1::DataConfig::Dispatch_Name(dispatch) : absl::StrCat(static_cast<int>(dispatch)),
              data.has_client() ? "OWN, DYNAMIC with data.client" : "DYNAMIC, STATIC");
}

// "data.idx, data.csv": the sources of our own workers.
std::string SourceNames() {
  const google::protobuf::OneofDescriptor* const sources = v1::DataConfig::descriptor()->FindOneofByName("source");
  std::string names;
  for (int i = 0; i < sources->field_count(); ++i) {
    if (sources->field(i)->number() == v1::DataConfig::kClientFieldNumber) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", "data.", sources->field(i)->name());
  }
  return names;
}

// Every source but text has one label per example, and files have one number as the label.
void ValidateLabels(const ModelSpec* model, const v1::DataConfig& data, ErrorList* errors) {
  if (model == nullptr || data.has_text()) return;
  if (model->has_classes()) {
    if (model->output.size() == 1) return;
    errors->Add("model.layers", absl::StrCat("an output of ", ShapeText(model->output)),
                "an output of one logit per class, unless the source is data.text");
    return;
  }
  const google::protobuf::FieldDescriptor* const source =
      v1::DataConfig::descriptor()->FindFieldByNumber(data.source_case());
  if (data.has_teacher() || source == nullptr) return;
  const int64_t outputs = NumElements(model->output);
  if (outputs == 1) return;
  errors->Add("model.loss", "MEAN_SQUARED_ERROR",
              absl::StrCat("SOFTMAX_CROSS_ENTROPY, or a last layer with 1 output (it has ", outputs, ") with data.",
                           source->name(), ", whose labels are single numbers"));
}

void ValidateAugmentation(const ModelSpec* model, const v1::DataConfig& data, ErrorList* errors) {
  if (!data.has_augmentation()) return;
  if (!data.has_idx() && !data.has_cifar()) {
    errors->Add("data.augmentation", "present", "absent unless the source is data.idx or data.cifar");
  }
  if (model == nullptr) return;
  if (model->input.size() != 3) {
    errors->Add("model.input_shape", ShapeText(model->input), "channels, height and width, with data.augmentation");
    return;
  }
  errors->CheckInteger("data.augmentation.crop_padding", data.augmentation().crop_padding(), 0,
                       std::min(model->input[1], model->input[2]));
}

}  // namespace

void ValidatePaths(absl::string_view field, const google::protobuf::RepeatedPtrField<std::string>& paths, bool required,
                   absl::string_view allowed, ErrorList* errors) {
  if (paths.empty() && required) errors->Add(field, "empty", allowed);
  for (int i = 0; i < paths.size(); ++i) {
    errors->CheckNotEmpty(absl::StrCat(field, "[", i, "]"), paths[i], "a path");
  }
}

void ValidateData(const ModelSpec* model, const v1::JobConfig& config, ErrorList* errors) {
  const v1::DataConfig& data = config.data();
  const bool evaluates = config.cluster().evaluators() > 0;
  switch (data.source_case()) {
    case v1::DataConfig::kIdx:
      ValidateIdx(data.idx(), evaluates, errors);
      break;
    case v1::DataConfig::kCsv:
      ValidateCsv(model, data.csv(), evaluates, errors);
      break;
    case v1::DataConfig::kTeacher:
      ValidateTeacher(model, data.teacher(), evaluates, errors);
      break;
    case v1::DataConfig::kCifar:
      ValidateCifar(data.cifar(), evaluates, errors);
      break;
    case v1::DataConfig::kText:
      ValidateText(model, data.text(), evaluates, errors);
      break;
    case v1::DataConfig::kCriteo:
      ValidateCriteo(model, data.criteo(), evaluates, errors);
      break;
    case v1::DataConfig::kClicks:
      ValidateClicks(data.clicks(), evaluates, errors);
      break;
    case v1::DataConfig::kClient:
      ValidateClient(config, errors);
      break;
    case v1::DataConfig::kColumns:
      ValidateColumns(model, data.columns(), evaluates, errors);
      break;
    case v1::DataConfig::kLibsvm:
      ValidateLibsvm(model, data.libsvm(), evaluates, errors);
      break;
    case v1::DataConfig::SOURCE_NOT_SET:
      if (!config.model().has_manifest()) {
        errors->Add("data", "without a source", absl::StrCat("one of ", SourceNames()));
      }
      break;
  }
  ValidateLabels(model, data, errors);
  ValidateKeys(model, data, errors);
  ValidateAugmentation(model, data, errors);
  ValidateDispatch(data, errors);
  if (data.dispatch() != v1::DataConfig::OWN) {
    errors->CheckInteger("data.shard_examples", data.shard_examples(), 1, kMaxExamples);
  }
  errors->CheckInteger("data.prefetch_batches", data.prefetch_batches(), 1, 64);
  errors->CheckInteger("data.prefetch_threads", data.prefetch_threads(), 1, 64);
  if (data.memory_bytes() > uint64_t{1} << 48) {
    errors->Add("data.memory_bytes", absl::StrCat(data.memory_bytes()), "0 to 281474976710656 (2^48)");
  }
}

}  // namespace rubato
