#include "common/model_spec_builder.h"

namespace rubato {
namespace {

// Of the linear layers inside of blocks. Their inputs have been normalised.
constexpr v1::Initializer kBlockInitializer = v1::LECUN_NORMAL;

v1::LayerConfig Linear(int64_t units, v1::Initializer initializer) {
  v1::LayerConfig config;
  config.mutable_linear()->set_units(units);
  config.mutable_linear()->set_weight_initializer(initializer);
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

}  // namespace

bool SpecBuilder::CheckHeads(int64_t heads) {
  bool ok = InRange("heads", heads, 1, 65536);
  ok &= ExpectSequence();
  if (!ok || !shape_) return false;
  const int64_t width = (*shape_)[1];
  if (width % heads != 0) {
    Error(absl::StrCat(path_, ".heads"), heads, " does not divide its input's width, ", width);
    return false;
  }
  // Three times it are the units of a linear layer.
  if (width > (int64_t{1} << 18)) {
    Error(path_, "its input's width is ", width, ", over ", int64_t{1} << 18);
    return false;
  }
  return true;
}

void SpecBuilder::AddAttention(const v1::AttentionLayer& attention, const std::string& name) {
  if (!CheckHeads(attention.heads())) {
    shape_.reset();
    return;
  }
  const int64_t width = (*shape_)[1];
  v1::LayerConfig heads;
  *heads.mutable_attention() = attention;
  AddPart(Linear(3 * width, kBlockInitializer), absl::StrCat(name, ".qkv"));
  AddPart(heads, absl::StrCat(name, ".heads"));
  AddPart(Linear(width, kBlockInitializer), absl::StrCat(name, ".output"));
}

void SpecBuilder::AddTransformer(const v1::TransformerLayer& transformer, const std::string& name) {
  const double dropout = transformer.dropout();
  bool ok = CheckHeads(transformer.heads());
  const int64_t width = ok ? (*shape_)[1] : 1;
  const int64_t mlp_width = transformer.mlp_width() == 0 ? 4 * width : transformer.mlp_width();
  ok &= InRange("mlp_width", mlp_width, 1, int64_t{1} << 20);
  if (!(dropout >= 0 && dropout < 1)) {
    Error(absl::StrCat(path_, ".dropout"), dropout, " is not in 0 (included) to 1 (excluded)");
    ok = false;
  }
  if (!ok) {
    shape_.reset();
    return;
  }
  v1::AttentionLayer attention;
  attention.set_heads(transformer.heads());
  const Point begin = Here();
  AddPart(LayerNorm(), absl::StrCat(name, ".norm1"));
  AddAttention(attention, absl::StrCat(name, ".attention"));
  if (dropout > 0) AddPart(Dropout(dropout), absl::StrCat(name, ".dropout1"));
  AddSum(absl::StrCat(name, ".sum1"), begin);
  const Point middle = Here();
  AddPart(LayerNorm(), absl::StrCat(name, ".norm2"));
  AddPart(Linear(mlp_width, kBlockInitializer), absl::StrCat(name, ".mlp.hidden"));
  AddPart(Gelu(), absl::StrCat(name, ".mlp.gelu"));
  AddPart(Linear(width, kBlockInitializer), absl::StrCat(name, ".mlp.output"));
  if (dropout > 0) AddPart(Dropout(dropout), absl::StrCat(name, ".dropout2"));
  AddSum(absl::StrCat(name, ".sum2"), middle);
}

void SpecBuilder::AddResidual(const v1::ResidualLayer& residual, const std::string& name) {
  const std::string path = path_;
  const Point begin = Here();
  if (residual.layers().empty()) Error(absl::StrCat(path, ".layers"), "at least one layer is required");
  AddLayers(residual.layers(), absl::StrCat(path, ".layers"), absl::StrCat(name, "."));
  const Point end = Here();
  Point shortcut = begin;
  if (residual.has_projection()) {
    path_ = absl::StrCat(path, ".projection");
    AddProjection(residual.projection(), name, begin);
    shortcut = Here();
    GoTo(end);
  }
  path_ = path;
  if (end.shape && shortcut.shape && *end.shape != *shortcut.shape) {
    Error(path, "its layers' output is ", ShapeText(*end.shape), " and its ",
          residual.has_projection() ? "projection's output" : "input", " is ", ShapeText(*shortcut.shape),
          residual.has_projection() ? "; they are added" : "; they are added, or a projection is needed");
    shape_.reset();
    return;
  }
  if (shortcut.layer == kModelInput && spec_.vocabulary > 0) {
    Error(path, "would add the model's input, which are tokens, to its layers' output");
    return;
  }
  AddSum(absl::StrCat(name, ".sum"), shortcut);
}

void SpecBuilder::AddProjection(const v1::ProjectionShortcut& projection, const std::string& name, const Point& begin) {
  const std::optional<Shape> output = shape_;
  const int64_t stride = projection.stride() == 0 ? 1 : projection.stride();
  GoTo(begin);
  bool ok = InRange("stride", stride, 1, 64);
  ok &= InRange("norm_groups", projection.norm_groups(), 0, 65536);
  ok &= ExpectImage();
  if (!ok || !output || output->size() != 3) {
    if (ok && output) Error(path_, "needs layers whose output is {channels, height, width}, not ", ShapeText(*output));
    shape_.reset();
    return;
  }
  v1::LayerConfig convolution;
  convolution.mutable_conv2d()->set_filters((*output)[0]);
  convolution.mutable_conv2d()->set_kernel(1);
  convolution.mutable_conv2d()->set_stride(stride);
  convolution.mutable_conv2d()->set_no_bias(projection.norm_groups() > 0);
  AddPart(convolution, absl::StrCat(name, ".shortcut"));
  if (projection.norm_groups() == 0) return;
  if ((*output)[0] % projection.norm_groups() != 0) {
    Error(absl::StrCat(path_, ".norm_groups"), projection.norm_groups(), " does not divide ", (*output)[0],
          " channels");
    return;
  }
  v1::LayerConfig norm;
  norm.mutable_group_norm()->set_groups(projection.norm_groups());
  AddPart(norm, absl::StrCat(name, ".shortcut_norm"));
}

void SpecBuilder::AddSum(const std::string& name, const Point& shortcut) {
  v1::LayerConfig config;
  config.mutable_residual();
  AddPart(config, name);
  spec_.layers.back().shortcut = shortcut.layer;
}

}  // namespace rubato
