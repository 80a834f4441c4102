#ifndef RUBATO_COMMON_MODEL_SPEC_H_
#define RUBATO_COMMON_MODEL_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/shape.h"
#include "proto/job_config.pb.h"

namespace rubato {

// The most elements that one example may have at any point of the model, and the most elements of one tensor.
inline constexpr int64_t kMaxExampleElements = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMaxTensorElements = int64_t{1} << 40;

// One trainable tensor.
struct TensorSpec {
  // As torch.nn has it: "<layer>.weight", "<layer>.bias", "<layer>.positions", "<attention>.in_proj_weight".
  std::string name;
  Shape shape = {};
  v1::Initializer initializer;  // Never INITIALIZER_UNSPECIFIED.
  bool ones = false;            // Starts as all ones (the weights of norms) instead.
  int64_t fan_in = 1;
  int64_t fan_out = 1;
  // Whether weight decay applies: not to biases, and not to the weights of norms. A client's tensors: always, as its
  // groups say what is exempt.
  bool decays = false;
  // A client's tensor: whose hyperparameters it has (Manifest.groups).
  uint32_t group = 0;
};

// A table of rows by 64-bit keys on the servers.
struct TableSpec {
  v1::TableConfig config;  // With every default filled in.
  // Where the rows of an example's keys begin in its input, one after another, or the vector that they become.
  int64_t input_offset = 0;

  int64_t keys_per_example() const { return config.keys_per_example(); }
  int64_t dimension() const { return config.dimension(); }
  // Whether an example's rows become one vector, and it may have fewer keys.
  bool is_bag() const { return config.has_combine(); }
  // What an example's rows take of its input.
  int64_t input_elements() const { return is_bag() ? dimension() : keys_per_example() * dimension(); }
};

// The model's input, in the place of a layer's index.
inline constexpr int kModelInput = -1;

// Elements [begin, end) of a layer's output, or of the model's input.
struct SourceRange {
  int layer = kModelInput;
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const SourceRange&, const SourceRange&) = default;
};

// One layer with its inferred shapes, without the batch dimension. Layers that consist of others have been replaced by
// them: `config` is never a transformer; attention stands for what is between its two linear layers, from their {
// positions, 3 * width} to {positions, width}; residual stands for the sum at its end, cross for a product by x_0, and
// branches for ranges that are put side by side: where a branch begins with a part of its input, and at their end.
struct LayerSpec {
  std::string name;
  v1::LayerConfig config;  // With every default filled in.
  Shape input;
  Shape output;
  // The layer whose output it takes, an index into ModelSpec::layers before its own, or kModelInput.
  int source = kModelInput;
  // A residual's: the layer whose output is added to that. A cross layer's: the one that it is multiplied with.
  int shortcut = kModelInput;
  // Of branches, which have several sources.
  std::vector<SourceRange> parts;
  // Whether the gradient of its input is needed: not of the model's, unless rows of tables are a part of it.
  bool needs_input_gradient = true;
  // Indices into ModelSpec::tensors: the weight first, then the bias. At most two.
  std::vector<int> tensors;
};

// What a model config means: layers with shapes, and the tensors that the servers hold. Of a client's model (manifest)
// tensors alone are known; they start as zeros until a client assigns them. Pure data.
struct ModelSpec {
  // With the rows of tables.
  Shape input;
  // What the data set has of it.
  Shape features;
  // If it is over 0 the inputs are tokens, whole numbers from 0 to vocabulary - 1.
  int64_t vocabulary = 0;
  Shape output;
  v1::ModelConfig::Loss loss = v1::ModelConfig::LOSS_UNSPECIFIED;
  std::vector<LayerSpec> layers;
  std::vector<TensorSpec> tensors;
  std::vector<TableSpec> tables;

  int64_t keys_per_example() const {
    int64_t keys = 0;
    for (const TableSpec& table : tables) keys += table.keys_per_example();
    return keys;
  }
  // Whether labels are class numbers, and not vectors.
  bool has_classes() const {
    return loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY || loss == v1::ModelConfig::BINARY_CROSS_ENTROPY;
  }
  // Class numbers in an example's label, and how many classes there are.
  int64_t labels_per_example() const { return output.size() == 2 ? output[0] : 1; }
  int64_t classes() const { return loss == v1::ModelConfig::BINARY_CROSS_ENTROPY ? 2 : output.back(); }
  // Whether there are two of them, of which an example has one.
  bool has_two_classes() const {
    return loss == v1::ModelConfig::BINARY_CROSS_ENTROPY ||
           (loss == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY && output == Shape{2});
  }
};

// The layer's own name, or the default one at its place in its list.
std::string LayerName(const v1::LayerConfig& config, int position);

// Sets the fields of layers that are absent and have a default, also of layers inside of others. What depends on a
// layer's input has no default here.
void FillLayerDefaults(google::protobuf::RepeatedPtrField<v1::LayerConfig>* layers);

// The same for a model's tables.
void FillTableDefaults(google::protobuf::RepeatedPtrField<v1::TableConfig>* tables);

// Infers every shape, with the defaults of layers for what is absent. All errors are in one InvalidArgument status, one
// per line, each with its field path, as in "model.layers[2].conv2d.kernel: 9 is larger than its input with padding,
// 7x7". Layers after one whose output is unknown are still checked for what does not depend on it. A model with a
// manifest has no layers, and nothing else that belongs to them.
absl::StatusOr<ModelSpec> BuildModelSpec(const v1::ModelConfig& config);

}  // namespace rubato

#endif  // RUBATO_COMMON_MODEL_SPEC_H_
