#ifndef RUBATO_COMMON_MODEL_SPEC_BUILDER_H_
#define RUBATO_COMMON_MODEL_SPEC_BUILDER_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/model_spec.h"

namespace rubato {

// The product, or nothing when a dimension is under 1 or the product is over `limit`.
std::optional<int64_t> BoundedProduct(const Shape& shape, int64_t limit);

// What BuildModelSpec does: goes through the config once, front to back. `shape_` is the output of the last layer, or
// nothing from the first error on that leaves it unknown.
class SpecBuilder {
 public:
  absl::StatusOr<ModelSpec> Build(const v1::ModelConfig& config);

 private:
  using LayerList = google::protobuf::RepeatedPtrField<v1::LayerConfig>;

  // ---- model_spec.cc ----

  template <typename... Parts>
  void Error(absl::string_view path, const Parts&... parts) {
    errors_.push_back(absl::StrCat(path, ": ", parts...));
  }
  // Reports a value outside [low, high]. Returns whether it is inside.
  bool InRange(absl::string_view field, int64_t value, int64_t low, int64_t high);

  void AddInput(const v1::ModelConfig& config);
  // `path` is the list's, as in "model.layers"; `prefix` comes before the names, as in "block3.".
  void AddLayers(const LayerList& layers, const std::string& path, const std::string& prefix);
  void AddLayer(const v1::LayerConfig& config, const std::string& path, const std::string& name);
  // A layer that is part of the one at path_.
  void AddPart(const v1::LayerConfig& config, const std::string& name);
  // Checks the name, and that it is the only one.
  void TakeName(const std::string& path, const std::string& name);
  // Adds a layer that consists of no others.
  void Append(const v1::LayerConfig& config, const std::string& name);
  // `tensor` has its name within the layer.
  void AddTensor(LayerSpec& layer, TensorSpec tensor);
  void CheckLoss(const v1::ModelConfig& config);

  // ---- model_spec_layers.cc: each checks one kind, fills in its defaults and tensors, and returns its output where
  // that is known. ----

  std::optional<Shape> AddKind(LayerSpec& layer);
  std::optional<Shape> AddLinear(LayerSpec& layer);
  std::optional<Shape> AddConv2d(LayerSpec& layer);
  std::optional<Shape> AddPool2d(v1::Pool2dLayer& pool);
  std::optional<Shape> AddGlobalAveragePool();
  std::optional<Shape> AddDropout(const v1::DropoutLayer& dropout);
  std::optional<Shape> AddLayerNorm(LayerSpec& layer);
  std::optional<Shape> AddGroupNorm(LayerSpec& layer);
  std::optional<Shape> AddEmbedding(LayerSpec& layer);
  std::optional<Shape> AddAttentionHeads(const v1::AttentionLayer& attention);

  v1::Initializer CheckedInitializer(v1::Initializer initializer);
  void CheckEpsilon(double epsilon);
  void AddGainAndBias(LayerSpec& layer, const Shape& shape);
  // Whether the input of a layer that works on images, or on sequences, is one (or is unknown).
  bool ExpectImage();
  bool ExpectSequence();
  std::optional<Shape> BoundedOutput(Shape output);

  // ---- model_spec_blocks.cc: layers that consist of others. ----

  void AddAttention(const v1::AttentionLayer& attention, const std::string& name);
  void AddTransformer(const v1::TransformerLayer& transformer, const std::string& name);
  void AddResidual(const v1::ResidualLayer& residual, const std::string& name);

  // The output of a layer: which one, and its shape where that is known.
  struct Point {
    int layer;
    std::optional<Shape> shape;
  };
  Point Here() const { return {last_, shape_}; }
  void GoTo(Point point) {
    last_ = point.layer;
    shape_ = std::move(point.shape);
  }
  // Whether a sequence's width can be split into so many heads.
  bool CheckHeads(int64_t heads);
  // 1x1 convolution from `begin` to the channels of the layers' output.
  void AddProjection(const v1::ProjectionShortcut& projection, const std::string& name, const Point& begin);
  void AddSum(const std::string& name, const Point& shortcut);

  ModelSpec spec_;
  std::optional<Shape> shape_;
  int last_ = kModelInput;                    // The layer whose output shape_ is.
  std::string path_;                          // Of the layer's kind, as in "model.layers[2].conv2d".
  std::map<std::string, std::string> names_;  // With the path of the layer that has it.
  std::vector<std::string> errors_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_MODEL_SPEC_BUILDER_H_
