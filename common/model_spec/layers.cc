// Every kind of layer: its defaults, what it checks, its tensors and its output; and the table of them all at the end.
#include "common/model_spec/layer_kind.h"

namespace rubato {
namespace {

// Of the norms. PyTorch's.
constexpr double kNormEpsilon = 1e-5;

// INITIALIZER_UNSPECIFIED has this meaning even if it is written.
template <typename Layer>
void FillInitializer(Layer* layer) {
  if (layer->weight_initializer() == v1::INITIALIZER_UNSPECIFIED) layer->set_weight_initializer(v1::HE_NORMAL);
}

void CheckInitializer(SpecBuilder& builder, v1::Initializer initializer) {
  if (v1::Initializer_IsValid(initializer)) return;
  builder.NotAllowed("weight_initializer", static_cast<int>(initializer),
                     "HE_NORMAL, GLOROT_UNIFORM, ZEROS, LECUN_NORMAL");
}

void AddBias(SpecBuilder& builder, LayerSpec& layer, int64_t units) {
  builder.AddTensor(layer, {.name = "bias", .shape = {units}, .initializer = v1::ZEROS});
}

// ---- layers of products ----

void FillLinear(v1::LayerConfig* config) { FillInitializer(config->mutable_linear()); }

std::optional<Shape> AddLinear(SpecBuilder& builder, LayerSpec& layer) {
  const v1::LinearLayer& linear = layer.config.linear();
  CheckInitializer(builder, linear.weight_initializer());
  const int64_t units = linear.units();
  if (!builder.InRange("units", units, 1, int64_t{1} << 20) || !builder.shape()) return std::nullopt;
  const Shape& input = *builder.shape();
  const bool sequence = input.size() == 2;
  const int64_t inputs = sequence ? input[1] : NumElements(input);
  builder.AddTensor(layer, {.name = "weight",
                            .shape = {units, inputs},
                            .initializer = linear.weight_initializer(),
                            .fan_in = inputs,
                            .fan_out = units,
                            .decays = true});
  if (!linear.no_bias()) AddBias(builder, layer, units);
  return sequence ? builder.BoundedOutput({input[0], units}) : Shape{units};
}

void FillConv2d(v1::LayerConfig* config) {
  if (!config->conv2d().has_stride()) config->mutable_conv2d()->set_stride(1);
  FillInitializer(config->mutable_conv2d());
}

std::optional<Shape> AddConv2d(SpecBuilder& builder, LayerSpec& layer) {
  const v1::Conv2dLayer& conv = layer.config.conv2d();
  CheckInitializer(builder, conv.weight_initializer());
  const int64_t filters = conv.filters(), kernel = conv.kernel(), padding = conv.padding(), stride = conv.stride();
  bool ok = builder.InRange("filters", filters, 1, 65536);
  ok &= builder.InRange("stride", stride, 1, 64);
  const bool kernel_ok = builder.InRange("kernel", kernel, 1, 64);
  // Without a valid kernel there is no valid upper end for the padding.
  ok &= builder.InRange("padding", padding, 0, kernel_ok ? kernel - 1 : 63) && kernel_ok;
  const Shape* const image = builder.ImageInput();
  if (!ok || image == nullptr) return std::nullopt;
  const int64_t channels = (*image)[0], height = (*image)[1] + 2 * padding, width = (*image)[2] + 2 * padding;
  if (kernel > height || kernel > width) {
    builder.FieldError("kernel", kernel, " is larger than its input with padding, ", height, "x", width);
    return std::nullopt;
  }
  const int64_t area = kernel * kernel;
  builder.AddTensor(layer, {.name = "weight",
                            .shape = {filters, channels, kernel, kernel},
                            .initializer = conv.weight_initializer(),
                            .fan_in = channels * area,
                            .fan_out = filters * area,
                            .decays = true});
  if (!conv.no_bias()) AddBias(builder, layer, filters);
  return builder.BoundedOutput({filters, (height - kernel) / stride + 1, (width - kernel) / stride + 1});
}

// ---- layers of images without weights ----

void FillPool2d(v1::Pool2dLayer* pool) {
  if (!pool->has_stride()) pool->set_stride(pool->window());
}

void FillMaxPool2d(v1::LayerConfig* config) { FillPool2d(config->mutable_max_pool2d()); }
void FillAveragePool2d(v1::LayerConfig* config) { FillPool2d(config->mutable_average_pool2d()); }

std::optional<Shape> AddPool2d(SpecBuilder& builder, const v1::Pool2dLayer& pool) {
  const int64_t window = pool.window(), stride = pool.stride();
  bool ok = builder.InRange("window", window, 1, 64);
  // Without a valid window a stride that is as long is no error of its own.
  if (ok || stride != window) ok &= builder.InRange("stride", stride, 1, 64);
  const Shape* const image = builder.ImageInput();
  if (!ok || image == nullptr) return std::nullopt;
  const int64_t height = (*image)[1], width = (*image)[2];
  if (window > height || window > width) {
    builder.FieldError("window", window, " is larger than its input, ", height, "x", width);
    return std::nullopt;
  }
  return Shape{(*image)[0], (height - window) / stride + 1, (width - window) / stride + 1};
}

std::optional<Shape> AddMaxPool2d(SpecBuilder& builder, LayerSpec& layer) {
  return AddPool2d(builder, layer.config.max_pool2d());
}

std::optional<Shape> AddAveragePool2d(SpecBuilder& builder, LayerSpec& layer) {
  return AddPool2d(builder, layer.config.average_pool2d());
}

std::optional<Shape> AddGlobalAveragePool(SpecBuilder& builder, LayerSpec&) {
  const Shape* const image = builder.ImageInput();
  if (image == nullptr) return std::nullopt;
  return Shape{(*image)[0]};
}

// ---- layers of any input ----

std::optional<Shape> AddDropout(SpecBuilder& builder, LayerSpec& layer) {
  builder.IsDropoutRate("rate", layer.config.dropout().rate());
  return builder.shape();
}

std::optional<Shape> AddFlatten(SpecBuilder& builder, LayerSpec&) {
  if (!builder.shape()) return std::nullopt;
  return Shape{NumElements(*builder.shape())};
}

// ---- norms ----

void CheckEpsilon(SpecBuilder& builder, double epsilon) {
  if (!(epsilon > 0 && epsilon <= 1)) builder.NotAllowed("epsilon", epsilon, "a number > 0, 1 or less");
}

void AddScaleAndShift(SpecBuilder& builder, LayerSpec& layer, const Shape& shape) {
  builder.AddTensor(layer, {.name = "weight", .shape = shape, .initializer = v1::ZEROS, .ones = true});
  builder.AddTensor(layer, {.name = "bias", .shape = shape, .initializer = v1::ZEROS});
}

void FillLayerNorm(v1::LayerConfig* config) {
  if (!config->layer_norm().has_epsilon()) config->mutable_layer_norm()->set_epsilon(kNormEpsilon);
}

std::optional<Shape> AddLayerNorm(SpecBuilder& builder, LayerSpec& layer) {
  CheckEpsilon(builder, layer.config.layer_norm().epsilon());
  if (!builder.shape()) return std::nullopt;
  const Shape& input = *builder.shape();
  AddScaleAndShift(builder, layer, input.size() == 2 ? Shape{input[1]} : input);
  return input;
}

void FillGroupNorm(v1::LayerConfig* config) {
  if (!config->group_norm().has_epsilon()) config->mutable_group_norm()->set_epsilon(kNormEpsilon);
}

std::optional<Shape> AddGroupNorm(SpecBuilder& builder, LayerSpec& layer) {
  const int64_t groups = layer.config.group_norm().groups();
  CheckEpsilon(builder, layer.config.group_norm().epsilon());
  const bool ok = builder.InRange("groups", groups, 1, 65536);
  const Shape* const image = builder.ImageInput();
  if (!ok || image == nullptr) return builder.shape();
  const int64_t channels = (*image)[0];
  if (channels % groups != 0) {
    builder.FieldError("groups", groups, " does not divide its input's ", channels, " channels");
  }
  AddScaleAndShift(builder, layer, {channels});
  return *image;
}

// ---- layers of tokens ----

void AddTable(SpecBuilder& builder, LayerSpec& layer, const char* name, int64_t rows, int64_t width) {
  builder.AddTensor(layer, {.name = name,
                            .shape = {rows, width},
                            .initializer = v1::LECUN_NORMAL,
                            .fan_in = width,
                            .fan_out = width,
                            .decays = true});
}

std::optional<Shape> AddEmbedding(SpecBuilder& builder, LayerSpec& layer) {
  const v1::EmbeddingLayer& embedding = layer.config.embedding();
  // Inputs travel as float32, which holds whole numbers up to 2^24.
  bool ok = builder.InRange("vocabulary", embedding.vocabulary(), 2, int64_t{1} << 24);
  ok &= builder.InRange("width", embedding.width(), 1, 65536);
  if (layer.source != kModelInput || builder.vocabulary() > 0) {
    builder.Error("is not the model's first layer; an embedding takes the model's input, {positions} of tokens");
    return std::nullopt;
  }
  if (builder.shape() && builder.shape()->size() != 1) {
    builder.Error("needs an input of {positions}, and its input is ", ShapeText(*builder.shape()));
    return std::nullopt;
  }
  if (!ok || !builder.shape()) return std::nullopt;
  builder.set_vocabulary(embedding.vocabulary());
  const int64_t positions = (*builder.shape())[0], width = embedding.width();
  AddTable(builder, layer, "weight", embedding.vocabulary(), width);
  if (!embedding.no_positions()) AddTable(builder, layer, "positions", positions, width);
  return builder.BoundedOutput({positions, width});
}

}  // namespace

std::optional<Shape> AddWithSameShape(SpecBuilder& builder, LayerSpec&) { return builder.shape(); }

// Has no `default:`, so that a kind that is forgotten fails the build.
LayerKind FindLayerKind(v1::LayerConfig::KindCase kind) {
  switch (kind) {
    case v1::LayerConfig::kLinear:
      return {.fill_defaults = FillLinear, .add = AddLinear};
    case v1::LayerConfig::kConv2D:
      return {.fill_defaults = FillConv2d, .add = AddConv2d};
    case v1::LayerConfig::kMaxPool2D:
      return {.fill_defaults = FillMaxPool2d, .add = AddMaxPool2d};
    case v1::LayerConfig::kAveragePool2D:
      return {.fill_defaults = FillAveragePool2d, .add = AddAveragePool2d};
    case v1::LayerConfig::kRelu:
    case v1::LayerConfig::kTanh:
    case v1::LayerConfig::kGelu:
      return {.add = AddWithSameShape};
    case v1::LayerConfig::kDropout:
      return {.add = AddDropout};
    case v1::LayerConfig::kLayerNorm:
      return {.fill_defaults = FillLayerNorm, .add = AddLayerNorm};
    case v1::LayerConfig::kFlatten:
      return {.add = AddFlatten};
    case v1::LayerConfig::kEmbedding:
      return {.add = AddEmbedding};
    case v1::LayerConfig::kAttention:
      return {.add = AddAttentionHeads, .expand = ExpandAttention};
    case v1::LayerConfig::kTransformer:
      return {.expand = ExpandTransformer};
    case v1::LayerConfig::kResidual:
      return {.fill_defaults = FillResidual, .add = AddWithSameShape, .expand = ExpandResidual};
    case v1::LayerConfig::kGroupNorm:
      return {.fill_defaults = FillGroupNorm, .add = AddGroupNorm};
    case v1::LayerConfig::kGlobalAveragePool:
      return {.add = AddGlobalAveragePool};
    case v1::LayerConfig::kBranches:
      return {.fill_defaults = FillBranches, .add = AddWithSameShape, .expand = ExpandBranches};
    case v1::LayerConfig::kDotInteraction:
      return {.add = AddDotInteraction};
    case v1::LayerConfig::kFactorizationMachine:
      return {.add = AddFactorizationMachine};
    case v1::LayerConfig::kCross:
      return {.fill_defaults = FillCross, .add = AddWithSameShape, .expand = ExpandCross};
    case v1::LayerConfig::KIND_NOT_SET:
      break;
  }
  return {};
}

}  // namespace rubato
