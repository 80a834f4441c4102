#include <google/protobuf/text_format.h>

#include <cmath>
#include <set>

#include "common/random.h"
#include "worker/nn/model_test_util.h"

namespace rubato::worker {
namespace {

constexpr int64_t kExamples = 3;
constexpr uint64_t kDropoutStream = 11;

struct GradientCase {
  const char* name;
  const char* layers;
  const char* input_shape = "[2, 6, 5]";
  const char* loss = "MEAN_SQUARED_ERROR";
  // Distance of the four points of the difference. Small if a kink (of relu, or a maximum) must not be crossed.
  double step = 1e-2;
};

// Each layer is checked with a layer before it, whose gradients need the checked layer's input gradient.
std::vector<GradientCase> Cases() {
  return {
      {"Linear", "layers { linear { units: 7 } } layers { linear { units: 4 } }"},
      {"LinearWithoutBias",
       "layers { linear { units: 7 no_bias: true } } layers { linear { units: 4 no_bias: true } }"},
      {"Conv2d", "layers { conv2d { filters: 3 kernel: 3 padding: 1 } } layers { conv2d { filters: 4 kernel: 3 } }"},
      {"Conv2dWithStride",
       "layers { conv2d { filters: 9 kernel: 2 } } layers { conv2d { filters: 4 kernel: 3 stride: 2 padding: 2 } }"},
      {"Conv2dWithoutBias",
       "layers { conv2d { filters: 3 kernel: 2 no_bias: true } } layers { conv2d { filters: 2 kernel: 2 no_bias: true "
       "} }"},
      {"MaxPool2d", "layers { layer_norm {} } layers { max_pool2d { window: 2 } }", "[2, 6, 5]", "MEAN_SQUARED_ERROR",
       1e-3},
      {"MaxPool2dOverlapping",
       "layers { conv2d { filters: 3 kernel: 2 } } layers { max_pool2d { window: 3 stride: 1 } }", "[2, 6, 5]",
       "MEAN_SQUARED_ERROR", 1e-3},
      {"AveragePool2d", "layers { conv2d { filters: 3 kernel: 2 } } layers { average_pool2d { window: 2 } }"},
      {"AveragePool2dOverlapping",
       "layers { conv2d { filters: 3 kernel: 2 } } layers { average_pool2d { window: 3 stride: 2 } }"},
      {"Relu", "layers { linear { units: 7 } } layers { relu {} } layers { linear { units: 4 } }", "6",
       "MEAN_SQUARED_ERROR", 1e-3},
      {"Tanh", "layers { linear { units: 7 } } layers { tanh {} } layers { linear { units: 4 } }"},
      {"Gelu", "layers { linear { units: 7 } } layers { gelu {} } layers { linear { units: 4 } }"},
      {"Dropout", "layers { linear { units: 20 } } layers { dropout { rate: 0.4 } } layers { linear { units: 4 } }"},
      {"LayerNormOfVectors", "layers { linear { units: 7 } } layers { layer_norm {} } layers { linear { units: 4 } }"},
      {"LayerNormOfImages", "layers { conv2d { filters: 3 kernel: 2 } } layers { layer_norm { epsilon: 0.1 } }"},
      {"Flatten", "layers { conv2d { filters: 3 kernel: 2 } } layers { flatten {} } layers { linear { units: 4 } }"},
      {"SoftmaxCrossEntropy", "layers { linear { units: 7 } } layers { tanh {} } layers { linear { units: 5 } }", "6",
       "SOFTMAX_CROSS_ENTROPY"},
      {"GroupNorm", "layers { conv2d { filters: 6 kernel: 2 } } layers { group_norm { groups: 3 epsilon: 0.1 } }"},
      {"GlobalAveragePool", "layers { conv2d { filters: 3 kernel: 2 } } layers { global_average_pool {} }"},
      {"ResidualWithIdentity",
       "layers { conv2d { filters: 3 kernel: 2 } } layers { residual { layers { conv2d { filters: 3 kernel: 3 padding: "
       "1 } } layers { tanh {} } } } layers { linear { units: 4 } }"},
      {"ResidualWithProjection",
       "layers { conv2d { filters: 3 kernel: 2 } } layers { residual { layers { conv2d { filters: 4 kernel: 3 padding: "
       "1 stride: 2 } } layers { tanh {} } projection { stride: 2 norm_groups: 2 } } }"},
      // Of the model's input, which has no gradient, and with layers that give their input's memory back.
      {"ResidualFirst", "layers { residual { layers { gelu {} } projection {} } } layers { linear { units: 3 } }"},
      {"ResidualInResidual",
       "layers { linear { units: 5 } } layers { residual { layers { residual { layers { tanh {} } } } layers { "
       "residual { layers { dropout { rate: 0.3 } } layers { linear { units: 5 } } } } } }",
       "6"},
      {"Embedding", "layers { embedding { vocabulary: 5 width: 3 } } layers { linear { units: 4 } }", "7"},
      {"EmbeddingWithoutPositions",
       "layers { embedding { vocabulary: 5 width: 3 no_positions: true } } layers { tanh {} }", "7"},
      {"LinearOfSequences", "layers { linear { units: 7 } } layers { linear { units: 4 no_bias: true } }", "[5, 3]"},
      {"LayerNormOfSequences", "layers { linear { units: 7 } } layers { layer_norm {} } layers { linear { units: 4 } }",
       "[5, 3]"},
      {"Attention", "layers { linear { units: 6 } } layers { attention { heads: 2 } }", "[5, 3]"},
      {"Transformer", "layers { linear { units: 6 } } layers { transformer { heads: 3 mlp_width: 8 dropout: 0.2 } }",
       "[5, 3]"},
      {"LanguageModel",
       "layers { embedding { vocabulary: 5 width: 6 } } layers { transformer { heads: 2 } } layers { transformer { "
       "heads: 1 } } layers { layer_norm {} } layers { linear { units: 5 } }",
       "7", "SOFTMAX_CROSS_ENTROPY"},
      {"DotInteraction",
       "layers { linear { units: 12 } } layers { dot_interaction { width: 3 } } layers { linear { units: 4 } }", "6"},
      {"FactorizationMachine",
       "layers { linear { units: 12 } } layers { factorization_machine { width: 4 } } layers { linear { units: 2 } }",
       "6"},
      {"Cross", "layers { linear { units: 5 } } layers { cross { layers: 3 } } layers { linear { units: 3 } }", "6"},
      {"CrossFirst", "layers { cross { layers: 2 } } layers { linear { units: 3 } }", "5"},
      // Of parts that overlap, one of which is as it was.
      {"Branches",
       "layers { linear { units: 9 } } layers { branches { branches { end: 5 layers { linear { units: 3 } } layers { "
       "tanh {} } } branches { begin: 2 } branches { layers { layer_norm {} } layers { linear { units: 2 } } } } } "
       "layers { linear { units: 3 } }",
       "6"},
      {"BranchesFirst",
       "layers { branches { branches { end: 3 layers { linear { units: 4 } } } branches { begin: 2 } } } layers { "
       "linear { units: 3 } }",
       "6"},
      {"BranchesInResidual",
       "layers { linear { units: 6 } } layers { residual { layers { branches { branches { end: 2 } branches { begin: 2 "
       "layers { cross {} } layers { tanh {} } } } } } } layers { linear { units: 3 } }",
       "6"},
      {"BinaryCrossEntropy", "layers { linear { units: 7 } } layers { tanh {} } layers { linear { units: 1 } }", "6",
       "BINARY_CROSS_ENTROPY"},
      {"MeanSquaredErrorOfImages", "layers { conv2d { filters: 3 kernel: 2 } }"},
  };
}

class GradientTest : public ::testing::TestWithParam<GradientCase> {
 protected:
  GradientTest()
      : model_(std::string("input_shape: ") + GetParam().input_shape + " " + GetParam().layers +
                   " loss: " + GetParam().loss,
               kExamples, 3) {
    Random random(5);
    inputs_.resize(kExamples * NumElements(model_->spec().input));
    const auto vocabulary = static_cast<uint64_t>(model_->spec().vocabulary);
    for (float& value : inputs_) {
      value = static_cast<float>(vocabulary > 0 ? static_cast<double>(random.Below(vocabulary)) : random.Normal());
    }
    targets_.resize(kExamples * NumElements(model_->spec().output));
    for (float& value : targets_) value = static_cast<float>(random.Normal());
    for (int64_t i = 0; i < kExamples * model_->spec().labels_per_example(); ++i) {
      classes_.push_back(static_cast<int32_t>(random.Below(model_->spec().classes())));
    }
  }

  void SetInputs() {
    absl::Status status = model_->spec().has_classes() ? model_->SetInputs(inputs_.data(), classes_.data(), kExamples)
                                                       : model_->SetInputs(inputs_.data(), targets_.data(), kExamples);
    EXPECT_TRUE(status.ok()) << status;
  }

  double LossAt(float* weight, double value) {
    const float before = *weight;
    *weight = static_cast<float>(value);
    SetInputs();
    const double loss = model_.Forward(true, kDropoutStream, 1).loss_sum;
    *weight = before;
    return loss;
  }

  // Central difference of fourth order, with the steps that float32 really made.
  double Difference(float* weight) {
    const double h = GetParam().step, center = *weight;
    auto slope = [&](double distance) {
      const auto high = static_cast<float>(center + distance), low = static_cast<float>(center - distance);
      return (LossAt(weight, high) - LossAt(weight, low)) / (static_cast<double>(high) - low);
    };
    return (4 * slope(h) - slope(2 * h)) / 3;
  }

  TestModel model_;
  std::vector<float> inputs_, targets_;
  std::vector<int32_t> classes_;
};

TEST_P(GradientTest, BackwardMatchesCentralDifferences) {
  SetInputs();
  model_.Forward(true, kDropoutStream, 1);
  model_.Backward(false);
  // The loss is a float32 computation: its rounding, about 1e-7 of it, is divided by the step.
  const double tolerance = GetParam().step < 1e-2 ? 2e-3 : 2e-4;
  double largest_anywhere = 0;
  for (int t = 0; t < model_.tensors(); ++t) {
    const TensorSpec& tensor = model_->spec().tensors[t];
    const int64_t n = NumElements(tensor.shape);
    const std::vector<float> gradient(model_.gradient(t), model_.gradient(t) + n);
    double largest = 0;
    for (float value : gradient) largest = std::max(largest, std::abs(static_cast<double>(value)));
    largest_anywhere = std::max(largest, largest_anywhere);
    // A bias before a layer norm has no effect in one direction; its gradient may be small, but is compared all the
    // same.
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(gradient[i], Difference(model_.weight(t) + i), tolerance * std::max(largest, 1.0))
          << tensor.name << ", element " << i;
    }
  }
  EXPECT_GT(largest_anywhere, 0.1);
}

// The kinds of layers in a list, also of those inside of others.
void AddKinds(const google::protobuf::RepeatedPtrField<v1::LayerConfig>& layers,
              std::set<v1::LayerConfig::KindCase>* kinds) {
  for (const v1::LayerConfig& layer : layers) {
    kinds->insert(layer.kind_case());
    AddKinds(layer.residual().layers(), kinds);
    for (const v1::Branch& branch : layer.branches().branches()) AddKinds(branch.layers(), kinds);
  }
}

TEST(GradientCasesTest, EveryKindOfLayerHasOne) {
  std::set<v1::LayerConfig::KindCase> kinds;
  for (const GradientCase& gradient_case : Cases()) {
    v1::ModelConfig config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(gradient_case.layers, &config)) << gradient_case.name;
    AddKinds(config.layers(), &kinds);
  }
  const google::protobuf::OneofDescriptor* const kind = v1::LayerConfig::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kind->field_count(); ++i) {
    EXPECT_EQ(kinds.count(static_cast<v1::LayerConfig::KindCase>(kind->field(i)->number())), 1u)
        << "no case of Cases() has a layer " << kind->field(i)->name();
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, GradientTest, ::testing::ValuesIn(Cases()),
                         [](const ::testing::TestParamInfo<GradientCase>& info) { return info.param.name; });

}  // namespace
}  // namespace rubato::worker
