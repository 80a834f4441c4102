#include "bench/gpu/step_floor.h"

#include <gtest/gtest.h>

#include "google/protobuf/text_format.h"

namespace rubato::bench {
namespace {

ModelSpec Spec(const std::string& text) {
  v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
  return *BuildModelSpec(config);
}

TEST(StepFloorTest, CountsProductsAndWhatTheyReadAndWrite) {
  const ModelSpec spec = Spec(R"pb(
    input_shape: 10
    layers { linear { units: 20 } }
    layers { linear { units: 5 } }
    loss: SOFTMAX_CROSS_ENTROPY
  )pb");
  // No gradient of the model's input.
  const LayerWork first = WorkOf(spec, spec.layers[0], 3, ElementType::kFloat32);
  EXPECT_EQ(first.forward.flops, 2 * 3 * 10 * 20);
  EXPECT_EQ(first.backward.flops, 2 * 3 * 10 * 20);
  EXPECT_EQ(first.forward.bytes, 4 * (3 * 10 + 3 * 20 + 200));
  EXPECT_EQ(first.backward.bytes, 4 * (3 * 10 + 3 * 20 + 200));
  const LayerWork second = WorkOf(spec, spec.layers[1], 3, ElementType::kBfloat16);
  EXPECT_EQ(second.backward.flops, 2 * 2 * 3 * 20 * 5);
  EXPECT_EQ(second.backward.bytes, 2 * (2 * 3 * 20 + 3 * 5) + 8 * 100);
}

TEST(StepFloorTest, ConvolutionsMultiplyEveryTap) {
  const ModelSpec spec = Spec(R"pb(
    input_shape: [ 2, 8, 8 ]
    layers { conv2d { filters: 4 kernel: 3 padding: 1 } }
    layers { global_average_pool {} }
    loss: SOFTMAX_CROSS_ENTROPY
  )pb");
  EXPECT_EQ(WorkOf(spec, spec.layers[0], 5, ElementType::kFloat32).forward.flops, 2 * 5 * 4 * 64 * (2 * 9));
}

TEST(StepFloorTest, ALayerTakesWhatItsSlowerPartTakes) {
  const ModelSpec spec = Spec(R"pb(
    input_shape: 10
    layers { linear { units: 20 no_bias: true } }
    loss: SOFTMAX_CROSS_ENTROPY
  )pb");
  EXPECT_DOUBLE_EQ(StepFloor(spec, 3, ElementType::kFloat32, {.flops_per_s = 1, .bytes_per_s = 1e9}), 2400);
  EXPECT_DOUBLE_EQ(StepFloor(spec, 3, ElementType::kFloat32, {.flops_per_s = 1e9, .bytes_per_s = 1}), 2 * 1160);
}

}  // namespace
}  // namespace rubato::bench
