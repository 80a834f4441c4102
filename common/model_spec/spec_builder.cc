#include "common/model_spec/spec_builder.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "common/model_spec/layer_kind.h"
#include "common/model_spec/manifest.h"
#include "common/model_spec/tables.h"

namespace rubato {
namespace {

constexpr size_t kMaxNameLength = 128;

bool IsName(absl::string_view name) {
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return !name.empty() && name.size() <= kMaxNameLength;
}

// The field that is set in the oneof, as in "conv2d". Empty when none is.
std::string KindName(const v1::LayerConfig& layer) {
  if (layer.kind_case() == v1::LayerConfig::KIND_NOT_SET) return "";
  return v1::LayerConfig::descriptor()->FindFieldByNumber(layer.kind_case())->name();
}

std::string AllKinds() {
  const google::protobuf::OneofDescriptor* const kinds = v1::LayerConfig::descriptor()->FindOneofByName("kind");
  std::vector<std::string> names;
  for (int i = 0; i < kinds->field_count(); ++i) names.push_back(kinds->field(i)->name());
  return absl::StrJoin(names, ", ");
}

}  // namespace

std::string LayerName(const v1::LayerConfig& config, int position) {
  return config.name().empty() ? absl::StrCat(KindName(config), position) : config.name();
}

void FillLayerDefaults(google::protobuf::RepeatedPtrField<v1::LayerConfig>* layers) {
  for (v1::LayerConfig& layer : *layers) {
    const LayerKind kind = FindLayerKind(layer.kind_case());
    if (kind.fill_defaults != nullptr) kind.fill_defaults(&layer);
  }
}

absl::StatusOr<ModelSpec> BuildModelSpec(const v1::ModelConfig& config) {
  if (config.has_manifest()) return BuildManifestSpec(config);
  v1::ModelConfig filled = config;
  FillLayerDefaults(filled.mutable_layers());
  FillTableDefaults(filled.mutable_tables());
  return SpecBuilder().Build(filled);
}

absl::StatusOr<ModelSpec> SpecBuilder::Build(const v1::ModelConfig& config) {
  AddInput(config);
  AddTables(config.tables());
  AddLayers(config.layers(), "model.layers", "");
  if (config.layers().empty()) {
    ErrorAt("model.layers", "at least one layer is required");
  } else if (spec_.tensors.empty() && errors_.empty()) {
    ErrorAt("model.layers", "no layer has weights; at least one linear, conv2d or layer_norm is required");
  }
  CheckLoss(config);
  if (!errors_.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
  spec_.output = *shape_;
  return std::move(spec_);
}

void SpecBuilder::AddInput(const v1::ModelConfig& config) {
  Shape shape(config.input_shape().begin(), config.input_shape().end());
  if (shape.empty() || shape.size() > 3) {
    ErrorAt("model.input_shape", "has ", shape.size(), " dimensions; allowed are 1, {features} or {positions}, 2, ",
            "{positions, width}, and 3, {channels, height, width}");
  } else if (!BoundedProduct(shape, kMaxExampleElements)) {
    ErrorAt("model.input_shape", ShapeText(shape), " is not allowed: each dimension is at least 1 and their product ",
            "at most ", kMaxExampleElements);
  } else {
    spec_.input = shape;
    spec_.features = shape;
    shape_ = std::move(shape);
  }
}

void SpecBuilder::AddTables(const google::protobuf::RepeatedPtrField<v1::TableConfig>& tables) {
  if (tables.empty()) return;
  if (shape_ && shape_->size() != 1) {
    ErrorAt("model.input_shape", ShapeText(*shape_),
            " is not allowed: {features}, which the rows of model.tables follow");
  }
  int64_t elements = shape_ ? NumElements(*shape_) : 0;
  for (int i = 0; i < tables.size(); ++i) {
    const std::string path = absl::StrCat("model.tables[", i, "]");
    CheckTable(tables[i],
               [&](absl::string_view field, absl::string_view what) { ErrorAt(absl::StrCat(path, ".", field), what); });
    TakeName(absl::StrCat(path, ".name"), tables[i].name());
    spec_.tables.push_back({.config = tables[i], .input_offset = elements});
    elements += spec_.tables.back().input_elements();
  }
  if (!errors_.empty()) return ForgetShape();  // Layers have no errors of a table's.
  spec_.input = {elements};
  shape_ = spec_.input;
}

void SpecBuilder::AddLayers(const LayerList& layers, const std::string& path, const std::string& prefix) {
  for (int i = 0; i < layers.size(); ++i) {
    const std::string layer_path = absl::StrCat(path, "[", i, "]");
    if (layers[i].kind_case() == v1::LayerConfig::KIND_NOT_SET) {
      ErrorAt(layer_path, "has no kind; one of ", AllKinds(), " is required");
      ForgetShape();
      continue;
    }
    AddLayer(layers[i], layer_path, absl::StrCat(prefix, LayerName(layers[i], i)));
  }
}

void SpecBuilder::AddLayer(const v1::LayerConfig& config, const std::string& path, const std::string& name) {
  path_ = absl::StrCat(path, ".", KindName(config));
  TakeName(absl::StrCat(path, ".name"), name);
  const LayerKind kind = FindLayerKind(config.kind_case());
  if (kind.expand != nullptr) {
    kind.expand(*this, config, name);
  } else {
    Append(config, name, absl::StrCat(name, "."));
  }
}

void SpecBuilder::AddPart(const v1::LayerConfig& config, const std::string& name, absl::string_view tensor_prefix) {
  TakeName(absl::StrCat(path_, ".name"), name);
  v1::LayerConfig filled = config;
  const LayerKind kind = FindLayerKind(config.kind_case());
  if (kind.fill_defaults != nullptr) kind.fill_defaults(&filled);
  Append(filled, name, tensor_prefix.empty() ? absl::StrCat(name, ".") : tensor_prefix);
}

void SpecBuilder::Append(const v1::LayerConfig& config, const std::string& name, absl::string_view tensor_prefix) {
  LayerSpec layer;
  layer.name = name;
  layer.config = config;
  layer.config.set_name(name);
  layer.source = last_;
  layer.needs_input_gradient = last_ != kModelInput || !spec_.tables.empty();
  if (shape_) layer.input = *shape_;
  tensor_prefix_ = std::string(tensor_prefix);
  shape_ = FindLayerKind(config.kind_case()).add(*this, layer);
  if (shape_) layer.output = *shape_;
  last_ = static_cast<int>(spec_.layers.size());
  spec_.layers.push_back(std::move(layer));
}

void SpecBuilder::AddSum(const std::string& name, const Point& shortcut) {
  v1::LayerConfig config;
  config.mutable_residual();
  AddPart(config, name);
  spec_.layers.back().shortcut = shortcut.layer;
}

void SpecBuilder::AddProduct(const std::string& name, const Point& factor) {
  v1::LayerConfig config;
  config.mutable_cross();
  AddPart(config, name);
  spec_.layers.back().shortcut = factor.layer;
}

void SpecBuilder::AddRanges(const std::string& name, std::vector<SourceRange> parts) {
  int64_t elements = 0;
  for (const SourceRange& part : parts) elements += part.end - part.begin;
  last_ = parts.front().layer;
  shape_ = BoundedOutput({elements});
  v1::LayerConfig config;
  config.mutable_branches();
  AddPart(config, name);
  spec_.layers.back().parts = std::move(parts);
}

void SpecBuilder::GoTo(Point point) {
  last_ = point.layer;
  shape_ = std::move(point.shape);
}

void SpecBuilder::TakeName(const std::string& path, const std::string& name) {
  if (!IsName(name)) {
    ErrorAt(path, "\"", absl::CEscape(name), "\" is not a name: 1 to ", kMaxNameLength,
            " letters, digits, '-', '_' or '.'");
  }
  const std::string layer = path.substr(0, path.rfind('.'));
  auto [other, is_new] = names_.emplace(name, layer);
  if (!is_new) ErrorAt(path, "\"", name, "\" is already the name of ", other->second);
}

void SpecBuilder::AddTensor(LayerSpec& layer, TensorSpec tensor) {
  if (!BoundedProduct(tensor.shape, kMaxTensorElements)) {
    Error("its ", tensor.name, " would be ", ShapeText(tensor.shape), ", over ", kMaxTensorElements, " elements");
  }
  tensor.name = absl::StrCat(tensor_prefix_, tensor.name);
  layer.tensors.push_back(static_cast<int>(spec_.tensors.size()));
  spec_.tensors.push_back(std::move(tensor));
}

void SpecBuilder::CheckLoss(const v1::ModelConfig& config) {
  spec_.loss = config.loss();
  if (!v1::ModelConfig::Loss_IsValid(config.loss()) || config.loss() == v1::ModelConfig::LOSS_UNSPECIFIED) {
    ErrorAt("model.loss", "is required: SOFTMAX_CROSS_ENTROPY, BINARY_CROSS_ENTROPY or MEAN_SQUARED_ERROR");
    return;
  }
  if (!shape_) return;
  if (config.loss() == v1::ModelConfig::BINARY_CROSS_ENTROPY && *shape_ != Shape{1}) {
    ErrorAt("model.loss", "BINARY_CROSS_ENTROPY needs one logit, and the last layer's output is ", ShapeText(*shape_));
  }
  if (config.loss() != v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) return;
  if (shape_->size() > 2 || shape_->back() < 2) {
    ErrorAt("model.loss",
            "SOFTMAX_CROSS_ENTROPY needs one logit per class, at least 2, and the last layer's output is ",
            ShapeText(*shape_));
  }
}

bool SpecBuilder::InRange(absl::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return true;
  NotAllowed(field, value, absl::StrCat(low, " to ", high));
  return false;
}

bool SpecBuilder::IsDropoutRate(absl::string_view field, double rate) {
  // Written so that NaN is refused.
  if (rate >= 0 && rate < 1) return true;
  NotAllowed(field, rate, "0 or more, less than 1");
  return false;
}

const Shape* SpecBuilder::ImageInput() {
  if (!shape_) return nullptr;
  if (shape_->size() == 3) return &*shape_;
  Error("needs an input of {channels, height, width}, and its input is ", ShapeText(*shape_));
  return nullptr;
}

const Shape* SpecBuilder::SequenceInput() {
  if (!shape_) return nullptr;
  if (shape_->size() == 2) return &*shape_;
  Error("needs an input of {positions, width}, and its input is ", ShapeText(*shape_));
  return nullptr;
}

const Shape* SpecBuilder::FlatInput() {
  if (!shape_) return nullptr;
  if (shape_->size() == 1) return &*shape_;
  Error("needs an input of {features}, and its input is ", ShapeText(*shape_), "; a flatten layer makes it one");
  return nullptr;
}

std::optional<Shape> SpecBuilder::BoundedOutput(Shape output) {
  if (BoundedProduct(output, kMaxExampleElements)) return output;
  Error("its output would be ", ShapeText(output), ", over ", kMaxExampleElements, " elements");
  return std::nullopt;
}

}  // namespace rubato
