#ifndef RUBATO_COMMON_MODEL_SPEC_SPEC_BUILDER_H_
#define RUBATO_COMMON_MODEL_SPEC_SPEC_BUILDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/model_spec.h"

namespace rubato {

// What BuildModelSpec does: goes through a config, whose defaults are filled in, once and front to back. Kinds of
// layers (layer_kind.h) tell it what they consist of.
class SpecBuilder {
 public:
  using LayerList = google::protobuf::RepeatedPtrField<v1::LayerConfig>;

  absl::StatusOr<ModelSpec> Build(const v1::ModelConfig& config);

  // ---- for kinds of layers ----

  // The last layer's output, which is the next one's input. Unknown from the first error on that leaves it so.
  const std::optional<Shape>& shape() const { return shape_; }
  void ForgetShape() { shape_.reset(); }
  // Errors if that is known and of another kind. Null: it is not known, or an error.
  const Shape* ImageInput();
  const Shape* SequenceInput();
  const Shape* FlatInput();
  // `output`, unless it has too many elements, which is an error.
  std::optional<Shape> BoundedOutput(Shape output);

  // Of the layer.
  template <typename... Parts>
  void Error(const Parts&... parts) {
    ErrorAt(path_, parts...);
  }
  // Of a field of it.
  template <typename... Parts>
  void FieldError(absl::string_view field, const Parts&... parts) {
    ErrorAt(absl::StrCat(path_, ".", field), parts...);
  }
  template <typename Value>
  void NotAllowed(absl::string_view field, const Value& value, absl::string_view allowed) {
    FieldError(field, "value ", value, "; allowed: ", allowed);
  }
  // Whether a value is in [low, high]; an error if it is not.
  bool InRange(absl::string_view field, int64_t value, int64_t low, int64_t high);
  // The same for the probability of dropout, in [0, 1).
  bool IsDropoutRate(absl::string_view field, double rate);

  // The vocabulary of the model's input, 0 if it is not tokens.
  int64_t vocabulary() const { return spec_.vocabulary; }
  void set_vocabulary(int64_t vocabulary) { spec_.vocabulary = vocabulary; }

  // `tensor` has its name within the layer, as in "weight". A layer has at most two.
  void AddTensor(LayerSpec& layer, TensorSpec tensor);

  // A layer that is part of the one at path(). Its tensors are "<name>.weight" and so on, or have another prefix in the
  // place of "<name>.".
  void AddPart(const v1::LayerConfig& config, const std::string& name, absl::string_view tensor_prefix = "");
  // `path` is the list's, as in "model.layers"; `prefix` comes before the names, as in "block3.".
  void AddLayers(const LayerList& layers, const std::string& path, const std::string& prefix);
  // The output of a layer: which one, and its shape if that is known.
  struct Point {
    int layer;
    std::optional<Shape> shape;
  };
  Point Here() const { return {last_, shape_}; }
  // The next layer's input is there.
  void GoTo(Point point);
  // Adds the output at `shortcut` to that of the last layer.
  void AddSum(const std::string& name, const Point& shortcut);
  // Multiplies that of the last layer with the output at `factor`, element by element.
  void AddProduct(const std::string& name, const Point& factor);
  // Puts at least one range side by side, of outputs that are known.
  void AddRanges(const std::string& name, std::vector<SourceRange> parts);

  // Of the layer's kind, as in "model.layers[2].conv2d".
  const std::string& path() const { return path_; }
  void set_path(std::string path) { path_ = std::move(path); }

 private:
  template <typename... Parts>
  void ErrorAt(absl::string_view path, const Parts&... parts) {
    errors_.push_back(absl::StrCat(path, ": ", parts...));
  }
  void AddInput(const v1::ModelConfig& config);
  // The input is longer by their rows.
  void AddTables(const google::protobuf::RepeatedPtrField<v1::TableConfig>& tables);
  void AddLayer(const v1::LayerConfig& config, const std::string& path, const std::string& name);
  // Checks the name, and that it is the only one.
  void TakeName(const std::string& path, const std::string& name);
  // Adds a layer that consists of no others.
  void Append(const v1::LayerConfig& config, const std::string& name, absl::string_view tensor_prefix);
  void CheckLoss(const v1::ModelConfig& config);

  ModelSpec spec_;
  std::optional<Shape> shape_;
  int last_ = kModelInput;     // The layer whose output shape_ is.
  std::string tensor_prefix_;  // Of the layer that is being added.
  std::string path_;
  std::map<std::string, std::string> names_;  // With the path of the layer that has it.
  std::vector<std::string> errors_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_MODEL_SPEC_SPEC_BUILDER_H_
