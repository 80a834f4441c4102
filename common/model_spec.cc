#include "common/model_spec.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "common/model_spec_builder.h"

namespace rubato {
namespace {

constexpr size_t kMaxNameLength = 128;

bool IsName(absl::string_view name) {
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return !name.empty() && name.size() <= kMaxNameLength;
}

const google::protobuf::OneofDescriptor* Kinds() { return v1::LayerConfig::descriptor()->FindOneofByName("kind"); }

// The field that is set in the oneof, as in "conv2d". Empty when none is.
std::string KindName(const v1::LayerConfig& layer) {
  if (layer.kind_case() == v1::LayerConfig::KIND_NOT_SET) return "";
  return v1::LayerConfig::descriptor()->FindFieldByNumber(layer.kind_case())->name();
}

std::string AllKinds() {
  std::vector<std::string> names;
  for (int i = 0; i < Kinds()->field_count(); ++i) names.push_back(Kinds()->field(i)->name());
  return absl::StrJoin(names, ", ");
}

}  // namespace

std::optional<int64_t> BoundedProduct(const Shape& shape, int64_t limit) {
  int64_t product = 1;
  for (int64_t dimension : shape) {
    if (dimension < 1 || dimension > limit / product) return std::nullopt;
    product *= dimension;
  }
  return product;
}

std::string LayerName(const v1::LayerConfig& config, int position) {
  return config.name().empty() ? absl::StrCat(KindName(config), position) : config.name();
}

bool SpecBuilder::InRange(absl::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return true;
  Error(absl::StrCat(path_, ".", field), value, " is not in ", low, " to ", high);
  return false;
}

void SpecBuilder::AddInput(const v1::ModelConfig& config) {
  Shape shape(config.input_shape().begin(), config.input_shape().end());
  if (shape.empty() || shape.size() > 3) {
    Error("model.input_shape", "has ", shape.size(), " dimensions; allowed are 1, {features} or {positions}, 2, ",
          "{positions, width}, and 3, {channels, height, width}");
  } else if (!BoundedProduct(shape, kMaxExampleElements)) {
    Error("model.input_shape", ShapeText(shape), " is not allowed: each dimension is at least 1 and their product ",
          "at most ", kMaxExampleElements);
  } else {
    spec_.input = shape;
    shape_ = std::move(shape);
  }
}

void SpecBuilder::TakeName(const std::string& path, const std::string& name) {
  if (!IsName(name)) {
    Error(path, "\"", absl::CEscape(name), "\" is not a name: 1 to ", kMaxNameLength,
          " letters, digits, '-', '_' or '.'");
  }
  const std::string layer = path.substr(0, path.rfind('.'));
  auto [other, is_new] = names_.emplace(name, layer);
  if (!is_new) Error(path, "\"", name, "\" is already the name of ", other->second);
}

void SpecBuilder::AddLayers(const LayerList& layers, const std::string& path, const std::string& prefix) {
  for (int i = 0; i < layers.size(); ++i) {
    const std::string layer_path = absl::StrCat(path, "[", i, "]");
    if (layers[i].kind_case() == v1::LayerConfig::KIND_NOT_SET) {
      Error(layer_path, "has no kind; one of ", AllKinds(), " is required");
      shape_.reset();
      continue;
    }
    AddLayer(layers[i], layer_path, absl::StrCat(prefix, LayerName(layers[i], i)));
  }
}

void SpecBuilder::AddLayer(const v1::LayerConfig& config, const std::string& path, const std::string& name) {
  path_ = absl::StrCat(path, ".", KindName(config));
  TakeName(absl::StrCat(path, ".name"), name);
  switch (config.kind_case()) {
    case v1::LayerConfig::kAttention:
      return AddAttention(config.attention(), name);
    case v1::LayerConfig::kTransformer:
      return AddTransformer(config.transformer(), name);
    case v1::LayerConfig::kResidual:
      return AddResidual(config.residual(), name);
    default:
      return Append(config, name);
  }
}

void SpecBuilder::AddPart(const v1::LayerConfig& config, const std::string& name) {
  TakeName(absl::StrCat(path_, ".name"), name);
  Append(config, name);
}

void SpecBuilder::Append(const v1::LayerConfig& config, const std::string& name) {
  LayerSpec layer;
  layer.name = name;
  layer.config = config;
  layer.config.set_name(name);
  layer.source = last_;
  if (shape_) layer.input = *shape_;
  shape_ = AddKind(layer);
  if (shape_) layer.output = *shape_;
  last_ = static_cast<int>(spec_.layers.size());
  spec_.layers.push_back(std::move(layer));
}

void SpecBuilder::AddTensor(LayerSpec& layer, TensorSpec tensor) {
  if (!BoundedProduct(tensor.shape, kMaxTensorElements)) {
    Error(path_, "its ", tensor.name, " would be ", ShapeText(tensor.shape), ", over ", kMaxTensorElements,
          " elements");
  }
  tensor.name = absl::StrCat(layer.name, "/", tensor.name);
  layer.tensors.push_back(static_cast<int>(spec_.tensors.size()));
  spec_.tensors.push_back(std::move(tensor));
}

void SpecBuilder::CheckLoss(const v1::ModelConfig& config) {
  spec_.loss = config.loss();
  if (config.loss() != v1::ModelConfig::SOFTMAX_CROSS_ENTROPY && config.loss() != v1::ModelConfig::MEAN_SQUARED_ERROR) {
    Error("model.loss", "is required: SOFTMAX_CROSS_ENTROPY or MEAN_SQUARED_ERROR");
    return;
  }
  if (!shape_ || config.loss() != v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) return;
  if (shape_->size() > 2 || shape_->back() < 2) {
    Error("model.loss", "SOFTMAX_CROSS_ENTROPY needs one logit per class, at least 2, and the last layer's output is ",
          ShapeText(*shape_));
  }
}

absl::StatusOr<ModelSpec> SpecBuilder::Build(const v1::ModelConfig& config) {
  AddInput(config);
  AddLayers(config.layers(), "model.layers", "");
  if (config.layers().empty()) {
    Error("model.layers", "at least one layer is required");
  } else if (spec_.tensors.empty() && errors_.empty()) {
    Error("model.layers", "no layer has weights; at least one linear, conv2d or layer_norm is required");
  }
  CheckLoss(config);
  if (!errors_.empty()) return absl::InvalidArgumentError(absl::StrJoin(errors_, "\n"));
  spec_.output = *shape_;
  return std::move(spec_);
}

absl::StatusOr<ModelSpec> BuildModelSpec(const v1::ModelConfig& config) { return SpecBuilder().Build(config); }

}  // namespace rubato
