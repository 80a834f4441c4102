#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/model_spec.h"
#include "common/model_spec/testing/spec_of_text.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;

// "name <- source", by index; " * factor" for products, " + shortcut" for sums, and all ranges for branches.
std::vector<std::string> Wiring(const ModelSpec& spec) {
  std::vector<std::string> lines;
  for (const LayerSpec& layer : spec.layers) {
    std::string& line = lines.emplace_back(absl::StrCat(layer.name, " <-"));
    for (const SourceRange& part : layer.parts) {
      absl::StrAppend(&line, " ", part.layer, "[", part.begin, ",", part.end, ")");
    }
    if (layer.parts.empty()) absl::StrAppend(&line, " ", layer.source);
    if (layer.config.has_cross()) absl::StrAppend(&line, " * ", layer.shortcut);
    if (layer.config.has_residual()) absl::StrAppend(&line, " + ", layer.shortcut);
  }
  return lines;
}

constexpr char kRecommender[] = R"pb(
  input_shape: 13
  tables { name: "keys" dimension: 4 keys_per_example: 3 algorithm: ADAGRAD learning_rate: 0.1 }
  layers {
    name: "vectors"
    branches {
      branches {
        end: 13
        layers {
          name: "bottom"
          linear { units: 8 }
        }
        layers { relu {} }
        layers { linear { units: 4 } }
      }
      branches { begin: 13 }
    }
  }
  layers {
    name: "dots"
    dot_interaction { width: 4 }
  }
  layers {
    name: "top"
    linear { units: 1 }
  }
  loss: BINARY_CROSS_ENTROPY
)pb";

TEST(ModelSpecInteractionsTest, BranchesTakeRangesAndPutOutputsSideBySide) {
  absl::StatusOr<ModelSpec> spec = Build(kRecommender);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(Wiring(*spec),
              ElementsAre("vectors.0.range <- -1[0,13)", "vectors.0.bottom <- 0", "vectors.0.relu1 <- 1",
                          "vectors.0.linear2 <- 2", "vectors.concat <- 3[0,4) -1[13,25)", "dots <- 4", "top <- 5"));
  EXPECT_EQ(spec->input, Shape{25});
  EXPECT_EQ(spec->layers[0].output, Shape{13});
  EXPECT_EQ(spec->layers[4].output, Shape{16});
  // The first vector, and the pairs of four.
  EXPECT_EQ(spec->layers[5].output, Shape{4 + 6});
  std::vector<std::string> names;
  for (const TensorSpec& tensor : spec->tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("vectors.0.bottom.weight", "vectors.0.bottom.bias", "vectors.0.linear2.weight",
                                 "vectors.0.linear2.bias", "top.weight", "top.bias"));
  EXPECT_TRUE(spec->has_classes());
  EXPECT_TRUE(spec->has_two_classes());
  EXPECT_EQ(spec->classes(), 2);
  EXPECT_EQ(spec->labels_per_example(), 1);
}

TEST(ModelSpecInteractionsTest, ABranchOfEverythingTakesItAsItIs) {
  absl::StatusOr<ModelSpec> spec = Build(R"pb(
    input_shape: 6
    layers {
      branches {
        branches { layers { linear { units: 2 } } }
        branches { layers { linear { units: 3 } } }
        branches {}
      }
    }
    loss: MEAN_SQUARED_ERROR
  )pb");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(Wiring(*spec), ElementsAre("branches0.0.linear0 <- -1", "branches0.1.linear0 <- -1",
                                         "branches0.concat <- 0[0,2) 1[0,3) -1[0,6)"));
  EXPECT_EQ(spec->output, Shape{11});
}

TEST(ModelSpecInteractionsTest, CrossMultipliesWithItsInputAndAddsTheLayerBefore) {
  absl::StatusOr<ModelSpec> spec = Build(R"pb(
    input_shape: 6
    layers { linear { units: 5 } }
    layers {
      name: "deep"
      cross { layers: 2 }
    }
    layers { cross {} }
    loss: MEAN_SQUARED_ERROR
  )pb");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(Wiring(*spec),
              ElementsAre("linear0 <- -1", "deep.layer0 <- 0", "deep.product0 <- 1 * 0", "deep.sum0 <- 2 + 0",
                          "deep.layer1 <- 3", "deep.product1 <- 4 * 0", "deep.sum1 <- 5 + 3", "cross2.layer0 <- 6",
                          "cross2.product0 <- 7 * 6", "cross2.sum0 <- 8 + 6"));
  EXPECT_EQ(spec->tensors[2].name, "deep.layer0.weight");
  EXPECT_EQ(spec->tensors[2].shape, (Shape{5, 5}));
  EXPECT_EQ(spec->tensors[3].name, "deep.layer0.bias");
  EXPECT_EQ(spec->output, Shape{5});
}

TEST(ModelSpecInteractionsTest, AFactorizationMachineIsOneNumber) {
  absl::StatusOr<ModelSpec> spec = Build(R"pb(
    input_shape: 6
    layers { linear { units: 8 } }
    layers { factorization_machine { width: 4 } }
    loss: BINARY_CROSS_ENTROPY
  )pb");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->output, Shape{1});
}

TEST(ModelSpecInteractionsTest, CombinedRowsAreOneVector) {
  absl::StatusOr<ModelSpec> spec = Build(R"pb(
    input_shape: 2
    tables { name: "words" dimension: 4 keys_per_example: 50 combine: MEAN algorithm: ADAGRAD learning_rate: 0.1 }
    tables { name: "user" dimension: 3 keys_per_example: 2 algorithm: ADAGRAD learning_rate: 0.1 }
    layers { linear { units: 1 } }
    loss: BINARY_CROSS_ENTROPY
  )pb");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->input, Shape{2 + 4 + 6});
  EXPECT_EQ(spec->tables[1].input_offset, 6);
  EXPECT_EQ(spec->keys_per_example(), 52);
}

TEST(ModelSpecInteractionsTest, ErrorsNameTheField) {
  EXPECT_EQ(ErrorOf("input_shape: 6 layers { dot_interaction { width: 4 } } layers { linear { units: 1 } }"),
            "model.layers[0].dot_interaction.width: 4 does not divide its input, 6 elements, into two vectors or more");
  EXPECT_EQ(ErrorOf("input_shape: 6 layers { factorization_machine { width: 6 } }"),
            "model.layers[0].factorization_machine.width: 6 does not divide its input, 6 elements, into two vectors or "
            "more");
  EXPECT_EQ(ErrorOf("input_shape: 6 layers { factorization_machine {} }"),
            "model.layers[0].factorization_machine.width: value 0; allowed: 1 to 1048576");
  EXPECT_EQ(
      ErrorOf("input_shape: [ 3, 4 ] layers { dot_interaction { width: 4 } }"),
      "model.layers[0].dot_interaction: needs an input of {features}, and its input is 3x4; a flatten layer makes "
      "it one");
  EXPECT_EQ(ErrorOf("input_shape: 100000 layers { dot_interaction { width: 1 } } layers { linear { units: 1 } }"),
            "model.layers[0].dot_interaction: its output would be 4999950001, over 2147483647 elements");
  EXPECT_EQ(ErrorOf("input_shape: 6 layers { cross { layers: 65 } }"),
            "model.layers[0].cross.layers: value 65; allowed: 1 to 64");
  EXPECT_EQ(ErrorOf("input_shape: 2000000 layers { cross {} }"),
            "model.layers[0].cross: its input has 2000000 elements, over 1048576");
  EXPECT_EQ(ErrorOf("input_shape: [ 2, 3 ] layers { cross {} }"),
            "model.layers[0].cross: needs an input of {features}, and its input is 2x3; a flatten layer makes it one");
}

TEST(ModelSpecInteractionsTest, ErrorsOfBranchesNameTheBranch) {
  EXPECT_EQ(ErrorOf("input_shape: 6 layers { branches {} }"),
            "model.layers[0].branches.branches: at least one branch is required");
  EXPECT_EQ(ErrorOf("input_shape: [ 2, 3 ] layers { branches { branches {} } } layers { linear { units: 1 } }"),
            "model.layers[0].branches: needs an input of {features}, and its input is 2x3; a flatten layer makes it "
            "one");
  EXPECT_EQ(ErrorOf(R"pb(
              input_shape: 6
              layers {
                branches {
                  branches { begin: 6 }
                  branches { begin: 3 end: 3 }
                  branches {
                    end: 7
                    layers { linear { units: 0 } }
                  }
                  branches { layers { cross { layers: 0 } } }
                }
              }
            )pb"),
            "model.layers[0].branches.branches[0].begin: value 6; allowed: 0 to 5\n"
            "model.layers[0].branches.branches[1].end: value 3; allowed: 4 to 6\n"
            "model.layers[0].branches.branches[2].end: value 7; allowed: 1 to 6\n"
            "model.layers[0].branches.branches[2].layers[0].linear.units: value 0; allowed: 1 to 1048576\n"
            "model.layers[0].branches.branches[3].layers[0].cross.layers: value 0; allowed: 1 to 64");
  EXPECT_EQ(ErrorOf(R"pb(
              input_shape: 6
              layers {
                branches {
                  branches { layers { embedding { vocabulary: 9 width: 2 } } }
                  branches { layers { linear { units: 1 } } }
                }
              }
            )pb"),
            "model.layers[0].branches: has an embedding, and would take the model's input, which are tokens, in parts");
}

TEST(ModelSpecInteractionsTest, LayersHaveNoErrorsOfATable) {
  std::string recommender = kRecommender;
  recommender.replace(recommender.find("dimension: 4"), 12, "dimension: 0");
  EXPECT_EQ(Build(recommender).status().message(), "model.tables[0].dimension: value 0; allowed: 1 to 4096");
}

TEST(ModelSpecInteractionsTest, BinaryCrossEntropyNeedsOneLogit) {
  EXPECT_EQ(Build("input_shape: 6 layers { linear { units: 2 } } loss: BINARY_CROSS_ENTROPY").status().message(),
            "model.loss: BINARY_CROSS_ENTROPY needs one logit, and the last layer's output is 2");
  EXPECT_EQ(Build("input_shape: 6 layers { linear { units: 2 } }").status().message(),
            "model.loss: is required: SOFTMAX_CROSS_ENTROPY, BINARY_CROSS_ENTROPY or MEAN_SQUARED_ERROR");
  EXPECT_EQ(Build("input_shape: [ 2, 3 ] layers { linear { units: 1 } } loss: BINARY_CROSS_ENTROPY").status().message(),
            "model.loss: BINARY_CROSS_ENTROPY needs one logit, and the last layer's output is 2x1");
}

}  // namespace
}  // namespace rubato
