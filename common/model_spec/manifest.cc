#include "common/model_spec/manifest.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/model_spec/tables.h"

namespace rubato {
namespace {

constexpr size_t kMaxNameBytes = 512;
constexpr size_t kMaxTableNameBytes = 128;
constexpr int kMaxDimensions = 64;
constexpr uint32_t kMaxGroups = 4096;
// Errors that are named; a model may have thousands of tensors.
constexpr size_t kMaxErrors = 16;

using Errors = std::vector<std::string>;

// Protocol Buffers refuses text that is not UTF-8 where a message is read.
bool IsTensorName(absl::string_view name) {
  for (char c : name) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) return false;
  }
  return !name.empty() && name.size() <= kMaxNameBytes;
}

bool IsTableName(absl::string_view name) {
  for (char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') return false;
  }
  return !name.empty() && name.size() <= kMaxTableNameBytes;
}

void CheckNothingElse(const v1::ModelConfig& config, Errors* errors) {
  constexpr char kAbsent[] = ": value present; allowed: absent with model.manifest, whose model the clients compute";
  if (!config.input_shape().empty()) errors->push_back(absl::StrCat("model.input_shape", kAbsent));
  if (!config.layers().empty()) errors->push_back(absl::StrCat("model.layers", kAbsent));
  if (!config.tables().empty()) errors->push_back(absl::StrCat("model.tables", kAbsent));
  if (config.loss() != v1::ModelConfig::LOSS_UNSPECIFIED) errors->push_back(absl::StrCat("model.loss", kAbsent));
}

TensorSpec Tensor(const v1::ManifestTensor& tensor, const std::string& path, uint32_t groups, Errors* errors) {
  if (!IsTensorName(tensor.name())) {
    errors->push_back(absl::StrCat(path, ".name: value \"", absl::CHexEscape(tensor.name()), "\"; allowed: 1 to ",
                                   kMaxNameBytes, " bytes without control characters"));
  }
  TensorSpec spec = {.name = tensor.name(),
                     .shape = Shape(tensor.shape().begin(), tensor.shape().end()),
                     .initializer = v1::ZEROS,
                     .decays = true,
                     .group = tensor.group()};
  if (tensor.shape_size() > kMaxDimensions || !BoundedProduct(spec.shape, kMaxTensorElements)) {
    errors->push_back(absl::StrCat(path, ".shape: value ", ShapeText(spec.shape), " of ", tensor.name(),
                                   "; allowed: ", "dimensions of 1 or more, at most ", kMaxDimensions,
                                   ", whose product is at most ", kMaxTensorElements));
  }
  if (tensor.group() >= groups) {
    errors->push_back(absl::StrCat(path, ".group: value ", tensor.group(), " of ", tensor.name(),
                                   "; allowed: under model.manifest.groups, ", groups));
  }
  return spec;
}

// With every default but for keys_per_example, which is the client's affair.
TableSpec Table(const v1::TableConfig& table, const std::string& path, Errors* errors) {
  constexpr char kAbsent[] = ": value present; allowed: absent in model.manifest, whose clients know an example's keys";
  if (!IsTableName(table.name())) {
    errors->push_back(absl::StrCat(path, ".name: value \"", absl::CHexEscape(table.name()), "\"; allowed: 1 to ",
                                   kMaxTableNameBytes, " letters, digits, '-', '_' or '.'"));
  }
  if (table.has_keys_per_example()) errors->push_back(absl::StrCat(path, ".keys_per_example", kAbsent));
  if (table.has_combine()) errors->push_back(absl::StrCat(path, ".combine", kAbsent));
  google::protobuf::RepeatedPtrField<v1::TableConfig> filled;
  *filled.Add() = table;
  filled.Mutable(0)->clear_keys_per_example();
  filled.Mutable(0)->clear_combine();
  FillTableDefaults(&filled);
  CheckTable(filled.Get(0), [&](absl::string_view field, absl::string_view what) {
    errors->push_back(absl::StrCat(path, ".", field, ": ", what, " (", table.name(), ")"));
  });
  filled.Mutable(0)->clear_keys_per_example();
  return {.config = std::move(*filled.Mutable(0))};
}

// No two tensors or tables have the same name.
class Names {
 public:
  explicit Names(Errors* errors) : errors_(errors) {}

  // `place`: as in "tensors[3]".
  void Add(const std::string& name, const std::string& place) {
    const auto [other, is_new] = places_.emplace(name, place);
    if (is_new) return;
    errors_->push_back(absl::StrCat("model.manifest.", place, ".name: value \"", absl::CHexEscape(name),
                                    "\"; allowed: a name that no other tensor or table has, and ", other->second,
                                    " has it"));
  }

 private:
  Errors* const errors_;
  std::map<std::string, std::string> places_;
};

absl::Status ToStatus(Errors errors) {
  if (errors.empty()) return absl::OkStatus();
  if (errors.size() > kMaxErrors) {
    const size_t more = errors.size() - kMaxErrors;
    errors.resize(kMaxErrors);
    errors.push_back(absl::StrCat("model.manifest: and ", more, " errors more"));
  }
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

}  // namespace

absl::StatusOr<ModelSpec> BuildManifestSpec(const v1::ModelConfig& config) {
  const v1::Manifest& manifest = config.manifest();
  Errors errors;
  CheckNothingElse(config, &errors);
  if (manifest.groups() < 1 || manifest.groups() > kMaxGroups) {
    errors.push_back(absl::StrCat("model.manifest.groups: value ", manifest.groups(), "; allowed: 1 to ", kMaxGroups));
  }
  if (manifest.tensors().empty() && manifest.tables().empty()) {
    errors.push_back("model.manifest.tensors: value empty; allowed: one tensor or more, or a table");
  }
  ModelSpec spec;
  Names names(&errors);
  for (int i = 0; i < manifest.tensors_size(); ++i) {
    const std::string place = absl::StrCat("tensors[", i, "]");
    spec.tensors.push_back(
        Tensor(manifest.tensors(i), absl::StrCat("model.manifest.", place), manifest.groups(), &errors));
    names.Add(manifest.tensors(i).name(), place);
  }
  for (int i = 0; i < manifest.tables_size(); ++i) {
    const std::string place = absl::StrCat("tables[", i, "]");
    spec.tables.push_back(Table(manifest.tables(i), absl::StrCat("model.manifest.", place), &errors));
    names.Add(manifest.tables(i).name(), place);
  }
  if (absl::Status good = ToStatus(std::move(errors)); !good.ok()) return good;
  return spec;
}

}  // namespace rubato
