#include "common/model_spec.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace rubato {
namespace {

using ::testing::ElementsAre;

v1::ModelConfig Parse(const char* text) {
  v1::ModelConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

std::string ErrorOf(const char* text) {
  absl::StatusOr<ModelSpec> spec = BuildModelSpec(Parse(text));
  if (spec.ok()) return "OK";
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(spec.status().message());
}

TEST(ModelSpecTest, InfersShapesNamesAndTensorsOfAConvolutionalNetwork) {
  absl::StatusOr<ModelSpec> spec = BuildModelSpec(Parse(R"pb(
    input_shape: [ 3, 32, 28 ]
    layers { conv2d { filters: 8 kernel: 5 stride: 2 padding: 2 } }
    layers { relu {} }
    layers { max_pool2d { window: 3 } }
    layers { average_pool2d { window: 2 stride: 1 } }
    layers {
      name: "norm"
      layer_norm {}
    }
    layers { dropout { rate: 0.5 } }
    layers { flatten {} }
    layers { linear { units: 10 no_bias: true weight_initializer: GLOROT_UNIFORM } }
    loss: SOFTMAX_CROSS_ENTROPY
  )pb"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  std::vector<std::string> names;
  std::vector<Shape> outputs;
  for (const LayerSpec& layer : spec->layers) {
    names.push_back(layer.name);
    outputs.push_back(layer.output);
  }
  EXPECT_THAT(names, ElementsAre("conv2d0", "relu1", "max_pool2d2", "average_pool2d3", "norm", "dropout5", "flatten6",
                                 "linear7"));
  EXPECT_THAT(outputs, ElementsAre(Shape{8, 16, 14}, Shape{8, 16, 14}, Shape{8, 5, 4}, Shape{8, 4, 3}, Shape{8, 4, 3},
                                   Shape{8, 4, 3}, Shape{96}, Shape{10}));
  EXPECT_EQ(spec->output, Shape{10});
  EXPECT_EQ(spec->layers[2].config.max_pool2d().stride(), 3);
  EXPECT_EQ(spec->layers[4].config.layer_norm().epsilon(), 1e-5);

  ASSERT_EQ(spec->tensors.size(), 5u);
  const TensorSpec& filter = spec->tensors[0];
  EXPECT_EQ(filter.name, "conv2d0.weight");
  EXPECT_EQ(filter.shape, (Shape{8, 3, 5, 5}));
  EXPECT_EQ(filter.initializer, v1::HE_NORMAL);
  EXPECT_EQ(filter.fan_in, 75);
  EXPECT_EQ(filter.fan_out, 200);
  EXPECT_TRUE(filter.decays);
  EXPECT_EQ(spec->tensors[1].name, "conv2d0.bias");
  EXPECT_EQ(spec->tensors[1].initializer, v1::ZEROS);
  EXPECT_FALSE(spec->tensors[1].decays);
  EXPECT_EQ(spec->tensors[2].name, "norm.weight");
  EXPECT_TRUE(spec->tensors[2].ones);
  EXPECT_THAT(spec->layers[4].tensors, ElementsAre(2, 3));
  EXPECT_EQ(spec->tensors[4].shape, (Shape{10, 96}));
  EXPECT_EQ(spec->tensors[4].initializer, v1::GLOROT_UNIFORM);
}

TEST(ModelSpecTest, LinearFlattensAnImage) {
  absl::StatusOr<ModelSpec> spec =
      BuildModelSpec(Parse("input_shape: [ 2, 3, 4 ] layers { linear { units: 5 } } loss: MEAN_SQUARED_ERROR"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->tensors[0].shape, (Shape{5, 24}));
}

TEST(ModelSpecTest, ReportsAllErrorsAtOnceWithTheirFields) {
  EXPECT_EQ(
      ErrorOf(R"pb(
        input_shape: [ 1, 3, 3 ]
        layers { conv2d { filters: 0 kernel: 65 stride: -1 } }
        layers {
          name: "a b"
          linear { units: 0 weight_initializer: 9 }
        }
        layers { dropout { rate: 1 } }
        layers { layer_norm { epsilon: -1 } }
        layers {}
      )pb"),
      "model.layers[0].conv2d.filters: value 0; allowed: 1 to 65536\n"
      "model.layers[0].conv2d.stride: value -1; allowed: 1 to 64\n"
      "model.layers[0].conv2d.kernel: value 65; allowed: 1 to 64\n"
      "model.layers[1].name: \"a b\" is not a name: 1 to 128 letters, digits, '-', '_' or '.'\n"
      "model.layers[1].linear.weight_initializer: value 9; allowed: HE_NORMAL, GLOROT_UNIFORM, ZEROS, "
      "LECUN_NORMAL\n"
      "model.layers[1].linear.units: value 0; allowed: 1 to 1048576\n"
      "model.layers[2].dropout.rate: value 1; allowed: 0 or more, less than 1\n"
      "model.layers[3].layer_norm.epsilon: value -1; allowed: a number > 0, 1 or less\n"
      "model.layers[4]: has no kind; one of linear, conv2d, max_pool2d, average_pool2d, relu, tanh, gelu, "
      "dropout, layer_norm, flatten, embedding, attention, transformer, residual, group_norm, global_average_pool, "
      "branches, dot_interaction, factorization_machine, cross is "
      "required\n"
      "model.loss: is required: SOFTMAX_CROSS_ENTROPY, BINARY_CROSS_ENTROPY or MEAN_SQUARED_ERROR");
}

TEST(ModelSpecTest, RefusesWindowsLargerThanTheirInput) {
  EXPECT_EQ(ErrorOf(R"pb(
              input_shape: [ 1, 5, 7 ]
              layers { conv2d { filters: 2 kernel: 9 padding: 1 } }
              loss: MEAN_SQUARED_ERROR
            )pb"),
            "model.layers[0].conv2d.kernel: 9 is larger than its input with padding, 7x9");
  EXPECT_EQ(ErrorOf(R"pb(
              input_shape: [ 1, 7, 5 ]
              layers { max_pool2d { window: 6 } }
              layers { linear { units: 1 } }
              loss: MEAN_SQUARED_ERROR
            )pb"),
            "model.layers[0].max_pool2d.window: 6 is larger than its input, 7x5");
}

TEST(ModelSpecTest, RefusesImageLayersOnVectors) {
  EXPECT_EQ(ErrorOf("input_shape: 9 layers { conv2d { filters: 2 kernel: 3 } } loss: MEAN_SQUARED_ERROR"),
            "model.layers[0].conv2d: needs an input of {channels, height, width}, and its input is 9");
}

TEST(ModelSpecTest, RefusesNamesThatAreNotUnique) {
  EXPECT_EQ(ErrorOf(R"pb(
              input_shape: 9
              layers {
                name: "linear1"
                linear { units: 2 }
              }
              layers { linear { units: 2 } }
              loss: MEAN_SQUARED_ERROR
            )pb"),
            "model.layers[1].name: \"linear1\" is already the name of model.layers[0]");
}

TEST(ModelSpecTest, RefusesInputsThatAreEmptyOrTooLarge) {
  const char* rest = "layers { linear { units: 1 } } loss: MEAN_SQUARED_ERROR";
  EXPECT_EQ(ErrorOf((std::string("input_shape: [2, 2, 2, 2] ") + rest).c_str()),
            "model.input_shape: has 4 dimensions; allowed are 1, {features} or {positions}, 2, {positions, width}, and "
            "3, {channels, height, width}");
  EXPECT_THAT(ErrorOf((std::string("input_shape: 0 ") + rest).c_str()), ::testing::HasSubstr("model.input_shape: 0"));
  EXPECT_THAT(ErrorOf((std::string("input_shape: [65536, 65536, 65536] ") + rest).c_str()),
              ::testing::HasSubstr("at most 2147483647"));
}

TEST(ModelSpecTest, RefusesTensorsThatAreTooLarge) {
  EXPECT_EQ(ErrorOf("input_shape: 2147483647 layers { linear { units: 1048576 } } loss: MEAN_SQUARED_ERROR"),
            "model.layers[0].linear: its weight would be 1048576x2147483647, over 1099511627776 elements");
}

TEST(ModelSpecTest, CrossEntropyNeedsLogits) {
  EXPECT_EQ(ErrorOf(R"pb(
              input_shape: [ 1, 4, 4 ]
              layers { conv2d { filters: 2 kernel: 3 } }
              loss: SOFTMAX_CROSS_ENTROPY
            )pb"),
            "model.loss: SOFTMAX_CROSS_ENTROPY needs one logit per class, at least 2, and the last layer's output is "
            "2x2x2");
}

TEST(ModelSpecTest, NeedsLayersAndWeights) {
  EXPECT_EQ(ErrorOf("input_shape: 4 loss: MEAN_SQUARED_ERROR"), "model.layers: at least one layer is required");
  EXPECT_EQ(ErrorOf("input_shape: 4 layers { relu {} } loss: MEAN_SQUARED_ERROR"),
            "model.layers: no layer has weights; at least one linear, conv2d or layer_norm is required");
}

TEST(ModelSpecTest, AManifestIsItsTensorsAlone) {
  absl::StatusOr<ModelSpec> spec = BuildModelSpec(Parse(R"pb(
    manifest {
      groups: 3
      tensors {
        name: "conv.weight"
        shape: [ 8, 3, 5, 5 ]
        group: 2
      }
      tensors { name: "temperatur\303\244" }
    }
  )pb"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(spec->layers.empty());
  ASSERT_EQ(spec->tensors.size(), 2u);
  EXPECT_EQ(spec->tensors[0].name, "conv.weight");
  EXPECT_EQ(spec->tensors[0].shape, (Shape{8, 3, 5, 5}));
  EXPECT_EQ(spec->tensors[0].initializer, v1::ZEROS);
  EXPECT_TRUE(spec->tensors[0].decays);
  EXPECT_EQ(spec->tensors[0].group, 2u);
  EXPECT_EQ(spec->tensors[1].shape, Shape{});
}

TEST(ModelSpecTest, EveryErrorOfAManifestIsNamed) {
  EXPECT_EQ(ErrorOf("manifest { groups: 0 }"),
            "model.manifest.groups: value 0; allowed: 1 to 4096\n"
            "model.manifest.tensors: value empty; allowed: one tensor or more, or a table");
  EXPECT_EQ(
      ErrorOf(R"pb(
        input_shape: 3
        manifest {
          groups: 1
          tensors {
            name: "a"
            shape: [ 2, 0 ]
          }
          tensors { name: "a" group: 1 }
          tensors { name: "b\n" }
          tensors { shape: [ 1048576, 1048577 ] }
        }
      )pb"),
      "model.input_shape: value present; allowed: absent with model.manifest, whose model the clients compute\n"
      "model.manifest.tensors[0].shape: value 2x0 of a; allowed: dimensions of 1 or more, at most 64, whose product "
      "is at most 1099511627776\n"
      "model.manifest.tensors[1].group: value 1 of a; allowed: under model.manifest.groups, 1\n"
      "model.manifest.tensors[1].name: value \"a\"; allowed: a name that no other tensor or table has, and tensors[0] "
      "has it\n"
      "model.manifest.tensors[2].name: value \"b\\n\"; allowed: 1 to 512 bytes without control characters\n"
      "model.manifest.tensors[3].name: value \"\"; allowed: 1 to 512 bytes without control characters\n"
      "model.manifest.tensors[3].shape: value 1048576x1048577 of ; allowed: dimensions of 1 or more, at most 64, "
      "whose product is at most 1099511627776");
}

TEST(ModelSpecTest, AManifestMayHaveTables) {
  const absl::StatusOr<ModelSpec> spec = BuildModelSpec(Parse(R"pb(
    manifest {
      groups: 1
      tables { name: "users" dimension: 16 algorithm: ADAGRAD learning_rate: 0.1 }
      tables { name: "items" dimension: 4 algorithm: SGD learning_rate: 1 initial_bound: 0 shards: 8 }
    }
  )pb"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(spec->tensors.empty());
  ASSERT_EQ(spec->tables.size(), 2u);
  EXPECT_EQ(spec->tables[0].config.epsilon(), 1e-8);
  EXPECT_EQ(spec->tables[0].config.initial_bound(), 0.25);
  EXPECT_EQ(spec->tables[0].config.shards(), 64u);
  EXPECT_FALSE(spec->tables[0].config.has_keys_per_example());
  EXPECT_EQ(spec->tables[1].config.initial_bound(), 0);
  EXPECT_EQ(spec->tables[1].config.shards(), 8u);
}

TEST(ModelSpecTest, EveryErrorOfAManifestsTablesIsNamed) {
  EXPECT_EQ(
      ErrorOf(R"pb(
        manifest {
          groups: 1
          tensors { name: "users" }
          tables { name: "users" dimension: 0 algorithm: SGD learning_rate: 1 }
          tables { name: "a b" dimension: 1 algorithm: SGD learning_rate: 1 keys_per_example: 1 combine: SUM }
        }
      )pb"),
      "model.manifest.tables[0].dimension: value 0; allowed: 1 to 4096 (users)\n"
      "model.manifest.tables[0].name: value \"users\"; allowed: a name that no other tensor or table has, and "
      "tensors[0] has it\n"
      "model.manifest.tables[1].name: value \"a b\"; allowed: 1 to 128 letters, digits, '-', '_' or '.'\n"
      "model.manifest.tables[1].keys_per_example: value present; allowed: absent in model.manifest, whose clients know "
      "an example's keys\n"
      "model.manifest.tables[1].combine: value present; allowed: absent in model.manifest, whose clients know an "
      "example's keys");
}

}  // namespace
}  // namespace rubato
