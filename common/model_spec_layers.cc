#include "common/model_spec_builder.h"

namespace rubato {

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
    case v1::LayerConfig::kGlobalAveragePool:
      return AddGlobalAveragePool();
    case v1::LayerConfig::kDropout:
      return AddDropout(layer.config.dropout());
    case v1::LayerConfig::kLayerNorm:
      return AddLayerNorm(layer);
    case v1::LayerConfig::kGroupNorm:
      return AddGroupNorm(layer);
    case v1::LayerConfig::kEmbedding:
      return AddEmbedding(layer);
    case v1::LayerConfig::kAttention:
      return AddAttentionHeads(layer.config.attention());
    case v1::LayerConfig::kFlatten:
      if (!shape_) return std::nullopt;
      return Shape{NumElements(*shape_)};
    default:
      return shape_;
  }
}

v1::Initializer SpecBuilder::CheckedInitializer(v1::Initializer initializer) {
  if (!v1::Initializer_IsValid(initializer)) {
    Error(absl::StrCat(path_, ".weight_initializer"), static_cast<int>(initializer),
          " is not an initializer: HE_NORMAL, GLOROT_UNIFORM, ZEROS or LECUN_NORMAL");
  }
  return initializer == v1::INITIALIZER_UNSPECIFIED ? v1::HE_NORMAL : initializer;
}

std::optional<Shape> SpecBuilder::AddLinear(LayerSpec& layer) {
  v1::LinearLayer& linear = *layer.config.mutable_linear();
  linear.set_weight_initializer(CheckedInitializer(linear.weight_initializer()));
  int64_t units = linear.units();
  if (!InRange("units", units, 1, int64_t{1} << 20)) return std::nullopt;
  if (!shape_) return std::nullopt;
  const bool sequence = shape_->size() == 2;
  int64_t inputs = sequence ? (*shape_)[1] : NumElements(*shape_);
  AddTensor(layer, {.name = "weight",
                    .shape = {units, inputs},
                    .initializer = linear.weight_initializer(),
                    .fan_in = inputs,
                    .fan_out = units,
                    .decays = true});
  if (!linear.no_bias()) AddTensor(layer, {.name = "bias", .shape = {units}, .initializer = v1::ZEROS});
  return sequence ? BoundedOutput({(*shape_)[0], units}) : Shape{units};
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

std::optional<Shape> SpecBuilder::AddGlobalAveragePool() {
  if (!ExpectImage() || !shape_) return std::nullopt;
  return Shape{(*shape_)[0]};
}

std::optional<Shape> SpecBuilder::AddDropout(const v1::DropoutLayer& dropout) {
  // Written so that NaN is refused.
  if (!(dropout.rate() >= 0 && dropout.rate() < 1)) {
    Error(absl::StrCat(path_, ".rate"), dropout.rate(), " is not in 0 (included) to 1 (excluded)");
  }
  return shape_;
}

void SpecBuilder::CheckEpsilon(double epsilon) {
  if (!(epsilon > 0 && epsilon <= 1)) {
    Error(absl::StrCat(path_, ".epsilon"), epsilon, " is not in 0 (excluded) to 1");
  }
}

void SpecBuilder::AddGainAndBias(LayerSpec& layer, const Shape& shape) {
  AddTensor(layer, {.name = "gain", .shape = shape, .initializer = v1::ZEROS, .ones = true});
  AddTensor(layer, {.name = "bias", .shape = shape, .initializer = v1::ZEROS});
}

std::optional<Shape> SpecBuilder::AddLayerNorm(LayerSpec& layer) {
  v1::LayerNormLayer& norm = *layer.config.mutable_layer_norm();
  if (norm.epsilon() == 0) norm.set_epsilon(1e-5);
  CheckEpsilon(norm.epsilon());
  if (shape_) AddGainAndBias(layer, shape_->size() == 2 ? Shape{(*shape_)[1]} : *shape_);
  return shape_;
}

std::optional<Shape> SpecBuilder::AddGroupNorm(LayerSpec& layer) {
  v1::GroupNormLayer& norm = *layer.config.mutable_group_norm();
  if (norm.epsilon() == 0) norm.set_epsilon(1e-5);
  CheckEpsilon(norm.epsilon());
  bool ok = InRange("groups", norm.groups(), 1, 65536);
  ok &= ExpectImage();
  if (!ok || !shape_) return shape_;
  const int64_t channels = (*shape_)[0];
  if (channels % norm.groups() != 0) {
    Error(absl::StrCat(path_, ".groups"), norm.groups(), " does not divide its input's ", channels, " channels");
  }
  AddGainAndBias(layer, {channels});
  return shape_;
}

std::optional<Shape> SpecBuilder::AddEmbedding(LayerSpec& layer) {
  const v1::EmbeddingLayer& embedding = layer.config.embedding();
  // Inputs travel as float32, which holds whole numbers up to 2^24.
  bool ok = InRange("vocabulary", embedding.vocabulary(), 2, int64_t{1} << 24);
  ok &= InRange("width", embedding.width(), 1, 65536);
  if (layer.source != kModelInput || spec_.vocabulary > 0) {
    Error(path_, "is not the model's first layer; an embedding takes the model's input, {positions} of tokens");
    return std::nullopt;
  }
  if (shape_ && shape_->size() != 1) {
    Error(path_, "needs an input of {positions}, and its input is ", ShapeText(*shape_));
    return std::nullopt;
  }
  if (!ok || !shape_) return std::nullopt;
  spec_.vocabulary = embedding.vocabulary();
  const int64_t positions = (*shape_)[0], width = embedding.width();
  AddTensor(layer, {.name = "weight",
                    .shape = {embedding.vocabulary(), width},
                    .initializer = v1::LECUN_NORMAL,
                    .fan_in = width,
                    .fan_out = width,
                    .decays = true});
  if (!embedding.no_positions()) {
    AddTensor(layer, {.name = "positions",
                      .shape = {positions, width},
                      .initializer = v1::LECUN_NORMAL,
                      .fan_in = width,
                      .fan_out = width,
                      .decays = true});
  }
  return BoundedOutput({positions, width});
}

std::optional<Shape> SpecBuilder::AddAttentionHeads(const v1::AttentionLayer&) {
  if (!shape_) return std::nullopt;
  return Shape{(*shape_)[0], (*shape_)[1] / 3};
}

bool SpecBuilder::ExpectImage() {
  if (!shape_ || shape_->size() == 3) return true;
  Error(path_, "needs an input of {channels, height, width}, and its input is ", ShapeText(*shape_));
  return false;
}

bool SpecBuilder::ExpectSequence() {
  if (!shape_ || shape_->size() == 2) return true;
  Error(path_, "needs an input of {positions, width}, and its input is ", ShapeText(*shape_));
  return false;
}

std::optional<Shape> SpecBuilder::BoundedOutput(Shape output) {
  if (BoundedProduct(output, kMaxExampleElements)) return output;
  Error(path_, "its output would be ", ShapeText(output), ", over ", kMaxExampleElements, " elements");
  return std::nullopt;
}

}  // namespace rubato
