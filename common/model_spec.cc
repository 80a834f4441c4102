#include "common/model_spec.h"

#include <cmath>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace rubato {
namespace {

constexpr size_t kMaxNameLength = 128;

// The product, or nothing when a dimension is under 1 or the product is over `limit`.
std::optional<int64_t> BoundedProduct(const Shape& shape, int64_t limit) {
  int64_t product = 1;
  for (int64_t dimension : shape) {
    if (dimension < 1 || dimension > limit / product) return std::nullopt;
    product *= dimension;
  }
  return product;
}

bool IsName(absl::string_view name) {
  for (char c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return !name.empty() && name.size() <= kMaxNameLength;
}

// The field that is set in the oneof, as in "conv2d". Empty when none is.
absl::string_view KindName(const v1::LayerConfig& layer) {
  switch (layer.kind_case()) {
    case v1::LayerConfig::kLinear:
      return "linear";
    case v1::LayerConfig::kConv2D:
      return "conv2d";
    case v1::LayerConfig::kMaxPool2D:
      return "max_pool2d";
    case v1::LayerConfig::kAveragePool2D:
      return "average_pool2d";
    case v1::LayerConfig::kRelu:
      return "relu";
    case v1::LayerConfig::kTanh:
      return "tanh";
    case v1::LayerConfig::kGelu:
      return "gelu";
    case v1::LayerConfig::kDropout:
      return "dropout";
    case v1::LayerConfig::kLayerNorm:
      return "layer_norm";
    case v1::LayerConfig::kFlatten:
      return "flatten";
    case v1::LayerConfig::KIND_NOT_SET:
      break;
  }
  return "";
}

// Goes through the config once, front to back. `shape_` is the output of the last layer, or nothing from the first
// error on that leaves it unknown.
class SpecBuilder {
 public:
  absl::StatusOr<ModelSpec> Build(const v1::ModelConfig& config);

 private:
  template <typename... Parts>
  void Error(absl::string_view path, const Parts&... parts) {
    errors_.push_back(absl::StrCat(path, ": ", parts...));
  }
  // Reports a value outside [low, high]. Returns whether it is inside.
  bool InRange(absl::string_view field, int64_t value, int64_t low, int64_t high);
  v1::Initializer CheckedInitializer(v1::Initializer initializer);

  void AddInput(const v1::ModelConfig& config);
  void AddLayer(const v1::LayerConfig& config, int position);
  void NameLayer(LayerSpec& layer, int position);
  // Each checks one kind, fills in its defaults and tensors, and returns its output where that is known.
  std::optional<Shape> AddKind(LayerSpec& layer);
  std::optional<Shape> AddLinear(LayerSpec& layer);
  std::optional<Shape> AddConv2d(LayerSpec& layer);
  std::optional<Shape> AddPool2d(v1::Pool2dLayer& pool);
  std::optional<Shape> AddDropout(const v1::DropoutLayer& dropout);
  std::optional<Shape> AddLayerNorm(LayerSpec& layer);
  // `tensor` has its name within the layer.
  void AddTensor(LayerSpec& layer, TensorSpec tensor);
  void CheckLoss(const v1::ModelConfig& config);

  // Whether the input of a layer that works on images is one (or is unknown).
  bool ExpectImage();
  std::optional<Shape> BoundedOutput(Shape output);

  ModelSpec spec_;
  std::optional<Shape> shape_;
  std::string path_;  // Of the layer's kind, as in "model.layers[2].conv2d".
  std::map<std::string, int> positions_;
  std::vector<std::string> errors_;
};

bool SpecBuilder::InRange(absl::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return true;
  Error(absl::StrCat(path_, ".", field), value, " is not in ", low, " to ", high);
  return false;
}

v1::Initializer SpecBuilder::CheckedInitializer(v1::Initializer initializer) {
  if (!v1::Initializer_IsValid(initializer)) {
    Error(absl::StrCat(path_, ".weight_initializer"), static_cast<int>(initializer),
          " is not an initializer: HE_NORMAL, GLOROT_UNIFORM, ZEROS or LECUN_NORMAL");
  }
  return initializer == v1::INITIALIZER_UNSPECIFIED ? v1::HE_NORMAL : initializer;
}

void SpecBuilder::AddInput(const v1::ModelConfig& config) {
  Shape shape(config.input_shape().begin(), config.input_shape().end());
  if (shape.size() != 1 && shape.size() != 3) {
    Error("model.input_shape", "has ", shape.size(), " dimensions; allowed are 1, {features}, and 3, ",
          "{channels, height, width}");
  } else if (!BoundedProduct(shape, kMaxExampleElements)) {
    Error("model.input_shape", ShapeText(shape), " is not allowed: each dimension is at least 1 and their product ",
          "at most ", kMaxExampleElements);
  } else {
    spec_.input = shape;
    shape_ = std::move(shape);
  }
}

void SpecBuilder::NameLayer(LayerSpec& layer, int position) {
  std::string path = absl::StrCat("model.layers[", position, "].name");
  layer.name = layer.config.name();
  if (layer.name.empty()) layer.name = absl::StrCat(KindName(layer.config), position);
  layer.config.set_name(layer.name);
  if (!IsName(layer.name)) {
    Error(path, "\"", absl::CEscape(layer.name), "\" is not a name: 1 to ", kMaxNameLength,
          " letters, digits, '-', '_' or '.'");
  }
  auto [other, is_new] = positions_.emplace(layer.name, position);
  if (!is_new) Error(path, "\"", layer.name, "\" is already the name of model.layers[", other->second, "]");
}

void SpecBuilder::AddLayer(const v1::LayerConfig& config, int position) {
  absl::string_view kind = KindName(config);
  if (kind.empty()) {
    Error(absl::StrCat("model.layers[", position, "]"),
          "has no kind; one of linear, conv2d, max_pool2d, average_pool2d, relu, tanh, gelu, dropout, layer_norm, "
          "flatten is required");
    shape_.reset();
    return;
  }
  path_ = absl::StrCat("model.layers[", position, "].", kind);
  LayerSpec layer;
  layer.config = config;
  if (shape_) layer.input = *shape_;
  NameLayer(layer, position);
  shape_ = AddKind(layer);
  if (shape_) layer.output = *shape_;
  spec_.layers.push_back(std::move(layer));
}

std::optional<Shape> SpecBuilder::AddKind(LayerSpec& layer) {
  switch (layer.config.kind_case()) {
    case v1::LayerConfig::kLinear:
      return AddLinear(layer);
    case v1::LayerConfig::kConv2D:
      return AddConv2d(layer);
    case v1::LayerConfig::kMaxPool2D:
      return AddPool2d(*layer.config.mutable_max_pool2d());
    case v1::LayerConfig::kAveragePool2D:
      return AddPool2d(*layer.config.mutable_average_pool2d());
    case v1::LayerConfig::kDropout:
      return AddDropout(layer.config.dropout());
    case v1::LayerConfig::kLayerNorm:
      return AddLayerNorm(layer);
    case v1::LayerConfig::kFlatten:
      if (!shape_) return std::nullopt;
      return Shape{NumElements(*shape_)};
    default:
      return shape_;
  }
}

std::optional<Shape> SpecBuilder::AddLinear(LayerSpec& layer) {
  v1::LinearLayer& linear = *layer.config.mutable_linear();
  linear.set_weight_initializer(CheckedInitializer(linear.weight_initializer()));
  int64_t units = linear.units();
  if (!InRange("units", units, 1, int64_t{1} << 20)) return std::nullopt;
  if (shape_) {
    int64_t inputs = NumElements(*shape_);
    AddTensor(layer, {.name = "weight",
                      .shape = {units, inputs},
                      .initializer = linear.weight_initializer(),
                      .fan_in = inputs,
                      .fan_out = units,
                      .decays = true});
    if (!linear.no_bias()) AddTensor(layer, {.name = "bias", .shape = {units}, .initializer = v1::ZEROS});
  }
  return Shape{units};
}

std::optional<Shape> SpecBuilder::AddConv2d(LayerSpec& layer) {
  v1::Conv2dLayer& conv = *layer.config.mutable_conv2d();
  conv.set_weight_initializer(CheckedInitializer(conv.weight_initializer()));
  if (conv.stride() == 0) conv.set_stride(1);
  int64_t filters = conv.filters(), kernel = conv.kernel(), padding = conv.padding();
  bool ok = InRange("filters", filters, 1, 65536);
  ok &= InRange("stride", conv.stride(), 1, 64);
  bool kernel_ok = InRange("kernel", kernel, 1, 64);
  // Without a valid kernel there is no valid upper end for the padding.
  ok &= InRange("padding", padding, 0, kernel_ok ? kernel - 1 : 63) && kernel_ok;
  ok &= ExpectImage();
  if (!ok || !shape_) return std::nullopt;
  int64_t channels = (*shape_)[0], height = (*shape_)[1] + 2 * padding, width = (*shape_)[2] + 2 * padding;
  if (kernel > height || kernel > width) {
    Error(absl::StrCat(path_, ".kernel"), kernel, " is larger than its input with padding, ", height, "x", width);
    return std::nullopt;
  }
  int64_t area = kernel * kernel;
  AddTensor(layer, {.name = "weight",
                    .shape = {filters, channels, kernel, kernel},
                    .initializer = conv.weight_initializer(),
                    .fan_in = channels * area,
                    .fan_out = filters * area,
                    .decays = true});
  if (!conv.no_bias()) AddTensor(layer, {.name = "bias", .shape = {filters}, .initializer = v1::ZEROS});
  return BoundedOutput({filters, (height - kernel) / conv.stride() + 1, (width - kernel) / conv.stride() + 1});
}

std::optional<Shape> SpecBuilder::AddPool2d(v1::Pool2dLayer& pool) {
  bool ok = InRange("window", pool.window(), 1, 64);
  if (pool.stride() != 0) ok &= InRange("stride", pool.stride(), 1, 64);
  ok &= ExpectImage();
  if (pool.stride() == 0) pool.set_stride(pool.window());
  if (!ok || !shape_) return std::nullopt;
  int64_t height = (*shape_)[1], width = (*shape_)[2];
  if (pool.window() > height || pool.window() > width) {
    Error(absl::StrCat(path_, ".window"), pool.window(), " is larger than its input, ", height, "x", width);
    return std::nullopt;
  }
  return Shape{(*shape_)[0], (height - pool.window()) / pool.stride() + 1, (width - pool.window()) / pool.stride() + 1};
}

std::optional<Shape> SpecBuilder::AddDropout(const v1::DropoutLayer& dropout) {
  // Written so that NaN is refused.
  if (!(dropout.rate() >= 0 && dropout.rate() < 1)) {
    Error(absl::StrCat(path_, ".rate"), dropout.rate(), " is not in 0 (included) to 1 (excluded)");
  }
  return shape_;
}

std::optional<Shape> SpecBuilder::AddLayerNorm(LayerSpec& layer) {
  v1::LayerNormLayer& norm = *layer.config.mutable_layer_norm();
  if (norm.epsilon() == 0) norm.set_epsilon(1e-5);
  if (!(norm.epsilon() > 0 && norm.epsilon() <= 1)) {
    Error(absl::StrCat(path_, ".epsilon"), norm.epsilon(), " is not in 0 (excluded) to 1");
  }
  if (shape_) {
    AddTensor(layer, {.name = "gain", .shape = *shape_, .initializer = v1::ZEROS, .ones = true});
    AddTensor(layer, {.name = "bias", .shape = *shape_, .initializer = v1::ZEROS});
  }
  return shape_;
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

bool SpecBuilder::ExpectImage() {
  if (!shape_ || shape_->size() == 3) return true;
  Error(path_, "needs an input of {channels, height, width}, and its input is ", ShapeText(*shape_));
  return false;
}

std::optional<Shape> SpecBuilder::BoundedOutput(Shape output) {
  if (BoundedProduct(output, kMaxExampleElements)) return output;
  Error(path_, "its output would be ", ShapeText(output), ", over ", kMaxExampleElements, " elements");
  return std::nullopt;
}

void SpecBuilder::CheckLoss(const v1::ModelConfig& config) {
  spec_.loss = config.loss();
  if (config.loss() != v1::ModelConfig::SOFTMAX_CROSS_ENTROPY && config.loss() != v1::ModelConfig::MEAN_SQUARED_ERROR) {
    Error("model.loss", "is required: SOFTMAX_CROSS_ENTROPY or MEAN_SQUARED_ERROR");
    return;
  }
  if (!shape_ || config.loss() != v1::ModelConfig::SOFTMAX_CROSS_ENTROPY) return;
  if (shape_->size() != 1 || (*shape_)[0] < 2) {
    Error("model.loss", "SOFTMAX_CROSS_ENTROPY needs one logit per class, at least 2, and the last layer's output is ",
          ShapeText(*shape_));
  }
}

absl::StatusOr<ModelSpec> SpecBuilder::Build(const v1::ModelConfig& config) {
  AddInput(config);
  for (int i = 0; i < config.layers_size(); ++i) AddLayer(config.layers(i), i);
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

}  // namespace

absl::StatusOr<ModelSpec> BuildModelSpec(const v1::ModelConfig& config) { return SpecBuilder().Build(config); }

}  // namespace rubato
