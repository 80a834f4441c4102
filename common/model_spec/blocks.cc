// Layers that consist of others. Their parts and tensors have the names that the module of torch.nn has, if there is
// one (docs/formats.md).
#include "common/model_spec/layer_kind.h"

namespace rubato {
namespace {

// Of the linear layers inside of blocks. Their inputs have been normalised.
constexpr v1::Initializer kBlockInitializer = v1::LECUN_NORMAL;

v1::LayerConfig Linear(int64_t units) {
  v1::LayerConfig config;
  config.mutable_linear()->set_units(units);
  config.mutable_linear()->set_weight_initializer(kBlockInitializer);
  return config;
}

v1::LayerConfig LayerNorm() {
  v1::LayerConfig config;
  config.mutable_layer_norm();
  return config;
}

v1::LayerConfig Gelu() {
  v1::LayerConfig config;
  config.mutable_gelu();
  return config;
}

v1::LayerConfig Dropout(double rate) {
  v1::LayerConfig config;
  config.mutable_dropout()->set_rate(rate);
  return config;
}

// Whether a sequence's width can be split into so many heads.
bool CheckHeads(SpecBuilder& builder, int64_t heads) {
  const bool ok = builder.InRange("heads", heads, 1, 65536);
  const Shape* const sequence = builder.SequenceInput();
  if (!ok || sequence == nullptr) return false;
  const int64_t width = (*sequence)[1];
  if (width % heads != 0) {
    builder.FieldError("heads", heads, " does not divide its input's width, ", width);
    return false;
  }
  // Three times it are the units of a linear layer.
  if (width > (int64_t{1} << 18)) {
    builder.Error("its input's width is ", width, ", over ", int64_t{1} << 18);
    return false;
  }
  return true;
}

void AddAttention(SpecBuilder& builder, int64_t heads, const std::string& name) {
  if (!CheckHeads(builder, heads)) return builder.ForgetShape();
  const int64_t width = (*builder.shape())[1];
  v1::LayerConfig attention;
  attention.mutable_attention()->set_heads(heads);
  // torch.nn.MultiheadAttention has these as in_proj_weight and in_proj_bias.
  builder.AddPart(Linear(3 * width), absl::StrCat(name, ".in_proj"), absl::StrCat(name, ".in_proj_"));
  builder.AddPart(attention, absl::StrCat(name, ".heads"));
  builder.AddPart(Linear(width), absl::StrCat(name, ".out_proj"));
}

// A convolution with a 1x1 kernel from `begin` to the channels of the layers' output, and a norm if there is one.
void AddProjection(SpecBuilder& builder, const v1::ProjectionShortcut& projection, const std::string& name,
                   const SpecBuilder::Point& begin) {
  const std::optional<Shape> output = builder.shape();
  builder.GoTo(begin);
  bool ok = builder.InRange("stride", projection.stride(), 1, 64);
  ok &= builder.InRange("norm_groups", projection.norm_groups(), 0, 65536);
  const bool image = builder.ImageInput() != nullptr;
  if (!ok || !image || !output || output->size() != 3) {
    if (ok && image && output) {
      builder.Error("needs layers whose output is {channels, height, width}, not ", ShapeText(*output));
    }
    return builder.ForgetShape();
  }
  v1::LayerConfig convolution;
  convolution.mutable_conv2d()->set_filters((*output)[0]);
  convolution.mutable_conv2d()->set_kernel(1);
  convolution.mutable_conv2d()->set_stride(projection.stride());
  convolution.mutable_conv2d()->set_no_bias(projection.norm_groups() > 0);
  builder.AddPart(convolution, absl::StrCat(name, ".shortcut"));
  if (projection.norm_groups() == 0) return;
  if ((*output)[0] % projection.norm_groups() != 0) {
    builder.FieldError("norm_groups", projection.norm_groups(), " does not divide ", (*output)[0], " channels");
    return;
  }
  v1::LayerConfig norm;
  norm.mutable_group_norm()->set_groups(projection.norm_groups());
  builder.AddPart(norm, absl::StrCat(name, ".shortcut_norm"));
}

}  // namespace

std::optional<Shape> AddAttentionHeads(SpecBuilder& builder, LayerSpec&) {
  if (!builder.shape()) return std::nullopt;
  const Shape& input = *builder.shape();
  return Shape{input[0], input[1] / 3};
}

void ExpandAttention(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name) {
  AddAttention(builder, config.attention().heads(), name);
}

void ExpandTransformer(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name) {
  const v1::TransformerLayer& transformer = config.transformer();
  bool ok = CheckHeads(builder, transformer.heads());
  const int64_t width = ok ? (*builder.shape())[1] : 1;
  const int64_t mlp_width = transformer.has_mlp_width() ? transformer.mlp_width() : 4 * width;
  ok &= builder.InRange("mlp_width", mlp_width, 1, int64_t{1} << 20);
  ok &= builder.IsDropoutRate("dropout", transformer.dropout());
  if (!ok) return builder.ForgetShape();
  const v1::LayerConfig dropout = Dropout(transformer.dropout());
  const SpecBuilder::Point begin = builder.Here();
  builder.AddPart(LayerNorm(), absl::StrCat(name, ".norm1"));
  AddAttention(builder, transformer.heads(), absl::StrCat(name, ".self_attn"));
  if (transformer.dropout() > 0) builder.AddPart(dropout, absl::StrCat(name, ".dropout1"));
  builder.AddSum(absl::StrCat(name, ".sum1"), begin);
  const SpecBuilder::Point middle = builder.Here();
  builder.AddPart(LayerNorm(), absl::StrCat(name, ".norm2"));
  builder.AddPart(Linear(mlp_width), absl::StrCat(name, ".linear1"));
  builder.AddPart(Gelu(), absl::StrCat(name, ".gelu"));
  builder.AddPart(Linear(width), absl::StrCat(name, ".linear2"));
  if (transformer.dropout() > 0) builder.AddPart(dropout, absl::StrCat(name, ".dropout2"));
  builder.AddSum(absl::StrCat(name, ".sum2"), middle);
}

void FillResidual(v1::LayerConfig* config) {
  v1::ResidualLayer* const residual = config->mutable_residual();
  FillLayerDefaults(residual->mutable_layers());
  if (residual->has_projection() && !residual->projection().has_stride()) residual->mutable_projection()->set_stride(1);
}

void ExpandResidual(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name) {
  const v1::ResidualLayer& residual = config.residual();
  const std::string path = builder.path();
  const SpecBuilder::Point begin = builder.Here();
  if (residual.layers().empty()) builder.FieldError("layers", "at least one layer is required");
  builder.AddLayers(residual.layers(), absl::StrCat(path, ".layers"), absl::StrCat(name, "."));
  const SpecBuilder::Point end = builder.Here();
  SpecBuilder::Point shortcut = begin;
  if (residual.has_projection()) {
    builder.set_path(absl::StrCat(path, ".projection"));
    AddProjection(builder, residual.projection(), name, begin);
    shortcut = builder.Here();
    builder.GoTo(end);
  }
  builder.set_path(path);
  if (end.shape && shortcut.shape && *end.shape != *shortcut.shape) {
    builder.Error("its layers' output is ", ShapeText(*end.shape), " and its ",
                  residual.has_projection() ? "projection's output" : "input", " is ", ShapeText(*shortcut.shape),
                  residual.has_projection() ? "; they are added" : "; they are added, or a projection is needed");
    return builder.ForgetShape();
  }
  if (shortcut.layer == kModelInput && builder.vocabulary() > 0) {
    builder.Error("would add the model's input, which are tokens, to its layers' output");
    return;
  }
  builder.AddSum(absl::StrCat(name, ".sum"), shortcut);
}

}  // namespace rubato
