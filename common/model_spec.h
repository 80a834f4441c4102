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
  std::string name;  // "<layer>/weight", "<layer>/bias", "<layer>/gain".
  Shape shape = {};
  v1::Initializer initializer;  // Never INITIALIZER_UNSPECIFIED. Gains are ones: see `ones`.
  bool ones = false;            // Starts as all ones (gains) instead.
  int64_t fan_in = 1;
  int64_t fan_out = 1;
  bool decays = false;  // Whether weight decay applies: weights only.
};

// One layer with its inferred shapes, without the batch dimension.
struct LayerSpec {
  std::string name;
  v1::LayerConfig config;  // With every default filled in.
  Shape input;
  Shape output;
  // Indices into ModelSpec::tensors: weight (or gain) first, then bias. At most two.
  std::vector<int> tensors;
};

// What a model config means: layers with shapes, and the tensors that the servers hold. Pure data.
struct ModelSpec {
  Shape input;
  Shape output;
  v1::ModelConfig::Loss loss;
  std::vector<LayerSpec> layers;
  std::vector<TensorSpec> tensors;
};

// Infers every shape. All errors are in one InvalidArgument status, one per line, each with its field path, as in
// "model.layers[2].conv2d.kernel: 9 is larger than its input with padding, 7x7". Layers after one whose output is
// unknown are still checked for what does not depend on it.
absl::StatusOr<ModelSpec> BuildModelSpec(const v1::ModelConfig& config);

}  // namespace rubato

#endif  // RUBATO_COMMON_MODEL_SPEC_H_
