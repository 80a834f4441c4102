#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/model_spec.h"
#include "common/model_spec/testing/spec_of_text.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;

// "name <- source", and " + shortcut" for sums, by index.
std::vector<std::string> Wiring(const ModelSpec& spec) {
  std::vector<std::string> lines;
  for (const LayerSpec& layer : spec.layers) {
    lines.push_back(absl::StrCat(layer.name, " <- ", layer.source));
    if (layer.config.has_residual()) absl::StrAppend(&lines.back(), " + ", layer.shortcut);
  }
  return lines;
}

std::vector<std::string> TensorNames(const ModelSpec& spec) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : spec.tensors) names.push_back(tensor.name);
  return names;
}

TEST(ModelSpecBlocksTest, TransformerBecomesTheLayersThatItConsistsOf) {
  absl::StatusOr<ModelSpec> spec = Build(R"pb(
    input_shape: 16
    layers {
      name: "tokens"
      embedding { vocabulary: 256 width: 8 }
    }
    layers {
      name: "block"
      transformer { heads: 2 dropout: 0.1 }
    }
    layers { layer_norm {} }
    layers {
      name: "head"
      linear { units: 256 }
    }
    loss: SOFTMAX_CROSS_ENTROPY
  )pb");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(
      Wiring(*spec),
      ElementsAre("tokens <- -1", "block.norm1 <- 0", "block.self_attn.in_proj <- 1", "block.self_attn.heads <- 2",
                  "block.self_attn.out_proj <- 3", "block.dropout1 <- 4", "block.sum1 <- 5 + 0", "block.norm2 <- 6",
                  "block.linear1 <- 7", "block.gelu <- 8", "block.linear2 <- 9", "block.dropout2 <- 10",
                  "block.sum2 <- 11 + 6", "layer_norm2 <- 12", "head <- 13"));
  EXPECT_THAT(TensorNames(*spec),
              ElementsAre("tokens.weight", "tokens.positions", "block.norm1.weight", "block.norm1.bias",
                          "block.self_attn.in_proj_weight", "block.self_attn.in_proj_bias",
                          "block.self_attn.out_proj.weight", "block.self_attn.out_proj.bias", "block.norm2.weight",
                          "block.norm2.bias", "block.linear1.weight", "block.linear1.bias", "block.linear2.weight",
                          "block.linear2.bias", "layer_norm2.weight", "layer_norm2.bias", "head.weight", "head.bias"));
  EXPECT_EQ(spec->vocabulary, 256);
  EXPECT_EQ(spec->output, (Shape{16, 256}));
  EXPECT_EQ(spec->labels_per_example(), 16);
  EXPECT_EQ(spec->classes(), 256);
  EXPECT_EQ(spec->tensors[1].shape, (Shape{16, 8}));
  EXPECT_EQ(spec->tensors[2].shape, Shape{8});
  EXPECT_EQ(spec->tensors[4].shape, (Shape{24, 8}));
  EXPECT_EQ(spec->tensors[10].shape, (Shape{32, 8}));
  EXPECT_EQ(spec->layers[3].input, (Shape{16, 24}));
  EXPECT_EQ(spec->layers[3].output, (Shape{16, 8}));
}

TEST(ModelSpecBlocksTest, ResidualAddsItsInputOrAProjectionOfIt) {
  absl::StatusOr<ModelSpec> spec = Build(R"pb(
    input_shape: [ 3, 9, 8 ]
    layers {
      residual {
        layers { conv2d { filters: 3 kernel: 3 padding: 1 } }
        layers { relu {} }
      }
    }
    layers {
      name: "down"
      residual {
        layers {
          name: "a"
          conv2d { filters: 8 kernel: 3 stride: 2 padding: 1 }
        }
        layers { group_norm { groups: 4 } }
        projection { stride: 2 norm_groups: 2 }
      }
    }
    layers { global_average_pool {} }
    loss: MEAN_SQUARED_ERROR
  )pb");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(Wiring(*spec), ElementsAre("residual0.conv2d0 <- -1", "residual0.relu1 <- 0", "residual0.sum <- 1 + -1",
                                         "down.a <- 2", "down.group_norm1 <- 3", "down.shortcut <- 2",
                                         "down.shortcut_norm <- 5", "down.sum <- 4 + 6", "global_average_pool2 <- 7"));
  EXPECT_THAT(TensorNames(*spec),
              ElementsAre("residual0.conv2d0.weight", "residual0.conv2d0.bias", "down.a.weight", "down.a.bias",
                          "down.group_norm1.weight", "down.group_norm1.bias", "down.shortcut.weight",
                          "down.shortcut_norm.weight", "down.shortcut_norm.bias"));
  EXPECT_EQ(spec->layers[7].output, (Shape{8, 5, 4}));
  EXPECT_EQ(spec->output, Shape{8});
}

TEST(ModelSpecBlocksTest, BlocksInBlocksHaveAllTheirNames) {
  absl::StatusOr<ModelSpec> spec = Build(R"pb(
    input_shape: [ 4, 6 ]
    layers {
      name: "outer"
      residual {
        layers {
          name: "inner"
          residual { layers { attention { heads: 3 } } }
        }
      }
    }
    loss: MEAN_SQUARED_ERROR
  )pb");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(Wiring(*spec),
              ElementsAre("outer.inner.attention0.in_proj <- -1", "outer.inner.attention0.heads <- 0",
                          "outer.inner.attention0.out_proj <- 1", "outer.inner.sum <- 2 + -1", "outer.sum <- 3 + -1"));
}

TEST(ModelSpecBlocksTest, LayersOfSequencesWorkOnEachPosition) {
  absl::StatusOr<ModelSpec> spec = Build(R"pb(
    input_shape: [ 5, 6 ]
    layers { linear { units: 7 } }
    layers { layer_norm {} }
    layers { flatten {} }
    layers { linear { units: 2 } }
    loss: MEAN_SQUARED_ERROR
  )pb");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->tensors[0].shape, (Shape{7, 6}));
  EXPECT_EQ(spec->tensors[2].shape, Shape{7});
  EXPECT_EQ(spec->tensors[4].shape, (Shape{2, 35}));
  EXPECT_EQ(spec->labels_per_example(), 1);
}

TEST(ModelSpecBlocksTest, ErrorsNameTheFieldInsideTheBlock) {
  EXPECT_EQ(ErrorOf(R"pb(
              input_shape: [ 3, 8, 8 ]
              layers {
                residual {
                  layers { relu {} }
                  layers { conv2d { filters: 3 kernel: 9 } }
                }
              }
            )pb"),
            "model.layers[0].residual.layers[1].conv2d.kernel: 9 is larger than its input with padding, 8x8");
  EXPECT_EQ(ErrorOf(R"pb(
              input_shape: [ 3, 8, 8 ]
              layers { conv2d { filters: 6 kernel: 1 } }
              layers { group_norm { groups: 4 } }
              layers {
                residual {
                  layers { conv2d { filters: 6 kernel: 3 stride: 2 padding: 1 } }
                  projection { stride: 3 }
                }
              }
            )pb"),
            "model.layers[1].group_norm.groups: 4 does not divide its input's 6 channels\n"
            "model.layers[2].residual: its layers' output is 6x4x4 and its projection's output is 6x3x3; they are "
            "added");
  EXPECT_EQ(ErrorOf("input_shape: 4 layers { residual { layers { linear { units: 3 } } } }"),
            "model.layers[0].residual: its layers' output is 3 and its input is 4; they are added, or a projection is "
            "needed");
  EXPECT_EQ(ErrorOf("input_shape: 4 layers { linear { units: 4 } } layers { residual {} }"),
            "model.layers[1].residual.layers: at least one layer is required");
  EXPECT_EQ(ErrorOf("input_shape: [ 4, 6 ] layers { transformer { heads: 4 mlp_width: -1 dropout: 1 } }"),
            "model.layers[0].transformer.heads: 4 does not divide its input's width, 6\n"
            "model.layers[0].transformer.mlp_width: value -1; allowed: 1 to 1048576\n"
            "model.layers[0].transformer.dropout: value 1; allowed: 0 or more, less than 1");
  EXPECT_EQ(ErrorOf("input_shape: 4 layers { attention { heads: 2 } }"),
            "model.layers[0].attention: needs an input of {positions, width}, and its input is 4");
}

TEST(ModelSpecBlocksTest, TokensGoToAnEmbeddingAlone) {
  EXPECT_EQ(ErrorOf("input_shape: 4 layers { relu {} } layers { embedding { vocabulary: 9 width: 2 } }"),
            "model.layers[1].embedding: is not the model's first layer; an embedding takes the model's input, "
            "{positions} of tokens");
  EXPECT_EQ(ErrorOf("input_shape: 4 layers { embedding { vocabulary: 1 width: 0 } }"),
            "model.layers[0].embedding.vocabulary: value 1; allowed: 2 to 16777216\n"
            "model.layers[0].embedding.width: value 0; allowed: 1 to 65536");
  EXPECT_EQ(ErrorOf(R"pb(
              input_shape: 4
              layers {
                residual {
                  layers { embedding { vocabulary: 9 width: 2 } }
                  layers { flatten {} }
                  layers { linear { units: 4 } }
                }
              }
            )pb"),
            "model.layers[0].residual: would add the model's input, which are tokens, to its layers' output");
}

TEST(ModelSpecBlocksTest, NamesOfPartsAreUniqueToo) {
  EXPECT_EQ(ErrorOf(R"pb(
              input_shape: [ 4, 6 ]
              layers {
                name: "a.in_proj"
                relu {}
              }
              layers {
                name: "a"
                attention { heads: 2 }
              }
            )pb"),
            "model.layers[1].attention.name: \"a.in_proj\" is already the name of model.layers[0]");
}

}  // namespace
}  // namespace rubato
