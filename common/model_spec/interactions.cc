// Layers of what recommenders are made of: parts of a flat input, and what comes of vectors that meet each other.
#include "common/model_spec/layer_kind.h"

namespace rubato {
namespace {

// How many vectors of `width` the input consists of, at least two; 0 is an error, or the input is not known.
int64_t NumVectors(SpecBuilder& builder, int64_t width) {
  const bool ok = builder.InRange("width", width, 1, int64_t{1} << 20);
  const Shape* const input = builder.FlatInput();
  if (!ok || input == nullptr) return 0;
  const int64_t elements = (*input)[0];
  if (elements % width == 0 && elements / width >= 2) return elements / width;
  builder.FieldError("width", width, " does not divide its input, ", elements, " elements, into two vectors or more");
  return 0;
}

// What a branch takes of `input`. Nothing: it is not known, or an error.
std::optional<SourceRange> RangeOf(SpecBuilder& builder, const v1::Branch& branch, const SpecBuilder::Point& input) {
  if (!input.shape) return std::nullopt;
  const int64_t elements = NumElements(*input.shape);
  const SourceRange range = {
      .layer = input.layer, .begin = branch.begin(), .end = branch.has_end() ? branch.end() : elements};
  if (!builder.InRange("begin", range.begin, 0, elements - 1)) return std::nullopt;
  if (!builder.InRange("end", range.end, range.begin + 1, elements)) return std::nullopt;
  return range;
}

// Adds a branch's layers. Returns its output, as RangeOf.
std::optional<SourceRange> AddBranch(SpecBuilder& builder, const v1::Branch& branch, const std::string& name,
                                     const SpecBuilder::Point& input) {
  const std::string path = builder.path();
  const std::optional<SourceRange> range = RangeOf(builder, branch, input);
  if (branch.layers().empty()) return range;
  builder.GoTo(input);
  if (!range) {
    builder.ForgetShape();
  } else if (range->end - range->begin < NumElements(*input.shape)) {
    builder.AddRanges(absl::StrCat(name, ".range"), {*range});
  }
  builder.AddLayers(branch.layers(), absl::StrCat(path, ".layers"), absl::StrCat(name, "."));
  const SpecBuilder::Point end = builder.Here();
  if (!end.shape) return std::nullopt;
  return SourceRange{.layer = end.layer, .begin = 0, .end = NumElements(*end.shape)};
}

}  // namespace

std::optional<Shape> AddDotInteraction(SpecBuilder& builder, LayerSpec& layer) {
  const int64_t width = layer.config.dot_interaction().width(), vectors = NumVectors(builder, width);
  if (vectors == 0) return std::nullopt;
  return builder.BoundedOutput({width + vectors * (vectors - 1) / 2});
}

std::optional<Shape> AddFactorizationMachine(SpecBuilder& builder, LayerSpec& layer) {
  if (NumVectors(builder, layer.config.factorization_machine().width()) == 0) return std::nullopt;
  return Shape{1};
}

void FillCross(v1::LayerConfig* config) {
  if (!config->cross().has_layers()) config->mutable_cross()->set_layers(1);
}

void ExpandCross(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name) {
  constexpr int64_t kMostElements = int64_t{1} << 20;  // Of a linear layer.
  const int64_t layers = config.cross().layers();
  const bool ok = builder.InRange("layers", layers, 1, 64);
  const Shape* const flat = builder.FlatInput();
  if (!ok || flat == nullptr) return builder.ForgetShape();
  const int64_t elements = (*flat)[0];
  if (elements > kMostElements) {
    builder.Error("its input has ", elements, " elements, over ", kMostElements);
    return builder.ForgetShape();
  }
  v1::LayerConfig linear;
  linear.mutable_linear()->set_units(elements);
  linear.mutable_linear()->set_weight_initializer(v1::LECUN_NORMAL);
  const SpecBuilder::Point input = builder.Here();
  for (int64_t i = 0; i < layers; ++i) {
    const SpecBuilder::Point last = builder.Here();
    builder.AddPart(linear, absl::StrCat(name, ".layer", i));
    builder.AddProduct(absl::StrCat(name, ".product", i), input);
    builder.AddSum(absl::StrCat(name, ".sum", i), last);
  }
}

void FillBranches(v1::LayerConfig* config) {
  for (v1::Branch& branch : *config->mutable_branches()->mutable_branches()) {
    FillLayerDefaults(branch.mutable_layers());
  }
}

void ExpandBranches(SpecBuilder& builder, const v1::LayerConfig& config, const std::string& name) {
  const std::string path = builder.path();
  if (builder.FlatInput() == nullptr) builder.ForgetShape();
  const SpecBuilder::Point input = builder.Here();
  const int count = config.branches().branches_size();
  if (count == 0) builder.FieldError("branches", "at least one branch is required");
  std::vector<SourceRange> parts;
  for (int i = 0; i < count; ++i) {
    builder.set_path(absl::StrCat(path, ".branches[", i, "]"));
    const std::optional<SourceRange> part =
        AddBranch(builder, config.branches().branches(i), absl::StrCat(name, ".", i), input);
    if (part) parts.push_back(*part);
  }
  builder.set_path(path);
  if (input.layer == kModelInput && builder.vocabulary() > 0) {
    builder.Error("has an embedding, and would take the model's input, which are tokens, in parts");
  }
  if (parts.empty() || static_cast<int>(parts.size()) < count) return builder.ForgetShape();
  builder.AddRanges(absl::StrCat(name, ".concat"), std::move(parts));
}

}  // namespace rubato
