#include "worker/nn/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "worker/nn/model_test_util.h"

namespace rubato::worker {
namespace {

using ::testing::HasSubstr;

constexpr char kClassifier[] = R"pb(
  input_shape: 4
  layers { linear { units: 6 } }
  layers { dropout { rate: 0.5 } }
  layers { linear { units: 3 } }
  loss: SOFTMAX_CROSS_ENTROPY
)pb";

std::vector<float> RandomFloats(int64_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(random.Normal());
  return values;
}

std::vector<float> Gradient(TestModel& model, int tensor) {
  return {model.gradient(tensor), model.gradient(tensor) + model->gradient(tensor).elements()};
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-5) << i;
}

TEST(ModelTest, RefusesAnEmptyLargestBatch) {
  TestModel model(kClassifier, 2, 1);
  absl::Status status = Model::Create(model->spec(), &model.backend(), {.max_batch = 0}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "max_batch: 0 is not at least 1");
}

TEST(ModelTest, RefusesBatchesThatDoNotFit) {
  TestModel model(kClassifier, 2, 1);
  const std::vector<float> inputs(12), targets(9);
  const std::vector<int32_t> classes = {0, 3, 0};
  EXPECT_EQ(model->SetInputs(inputs.data(), classes.data(), 3).message(), "examples: 3 is not in 1 to 2");
  EXPECT_EQ(model->SetInputs(inputs.data(), classes.data(), 0).message(), "examples: 0 is not in 1 to 2");
  EXPECT_EQ(model->SetInputs(inputs.data(), classes.data(), 2).message(),
            "labels: example 1 of the batch has class 3; the model's last layer has classes 0 to 2");
  EXPECT_EQ(model->SetInputs(inputs.data(), targets.data(), 1).message(),
            "labels: the loss is SOFTMAX_CROSS_ENTROPY, and these are vectors");
  TestModel regression("input_shape: 4 layers { linear { units: 2 } } loss: MEAN_SQUARED_ERROR", 2, 1);
  EXPECT_EQ(regression->SetInputs(inputs.data(), classes.data(), 1).message(),
            "labels: the loss is MEAN_SQUARED_ERROR, and these are class numbers");
}

constexpr char kLanguageModel[] = R"pb(
  input_shape: 3
  layers { embedding { vocabulary: 7 width: 4 } }
  layers { transformer { heads: 2 dropout: 0.1 } }
  layers { linear { units: 5 } }
  loss: SOFTMAX_CROSS_ENTROPY
)pb";

TEST(ModelTest, ALabelOfBinaryCrossEntropyIsZeroOrOne) {
  TestModel model("input_shape: 4 layers { linear { units: 1 } } loss: BINARY_CROSS_ENTROPY", 3, 1);
  const std::vector<float> inputs = RandomFloats(12, 2);
  const std::vector<int32_t> classes = {0, 1, 2};
  EXPECT_EQ(model->SetInputs(inputs.data(), classes.data(), 3).message(),
            "labels: example 2 of the batch has class 2; the model's last layer has classes 0 to 1");
  ASSERT_OK(model->SetInputs(inputs.data(), classes.data(), 2));
  const LossResult loss = model.Forward(false, 0, 1);
  double expected = 0, correct = 0;
  for (int i = 0; i < 2; ++i) {
    const double logit = *(*model->AwaitOutput() + i);
    expected += std::log1p(std::exp(classes[i] == 1 ? -logit : logit));
    correct += (logit > 0) == (classes[i] == 1) ? 1 : 0;
  }
  EXPECT_NEAR(loss.loss_sum, expected, 1e-6);
  EXPECT_EQ(loss.correct, correct);
}

TEST(ModelTest, RefusesInputsThatAreNotTokens) {
  TestModel model(kLanguageModel, 2, 1);
  const std::vector<int32_t> classes = {0, 1, 2, 3, 4, 0};
  for (float bad : {7.0f, -1.0f, 0.5f, std::nanf("")}) {
    const std::vector<float> inputs = {0, 1, 6, 6, bad, 0};
    const std::string message(model->SetInputs(inputs.data(), classes.data(), 2).message());
    EXPECT_THAT(message, HasSubstr("inputs: example 1 of the batch has ")) << bad;
    EXPECT_THAT(message, HasSubstr(" at position 1; the model's embedding takes whole numbers from 0 to 6")) << bad;
  }
}

TEST(ModelTest, EveryPositionHasALabelAndTheLossIsTheirMean) {
  TestModel model(kLanguageModel, 2, 1);
  const std::vector<float> inputs = {0, 1, 6, 6, 2, 0};
  std::vector<int32_t> classes = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(model->SetInputs(inputs.data(), classes.data(), 2).message(),
            "labels: example 1 of the batch has class 5; the model's last layer has classes 0 to 4");
  // With weights of zero all classes are as likely, and the first counts as the largest.
  for (int i = 0; i < model.tensors(); ++i) std::fill_n(model.weight(i), model->weight(i).elements(), 0.0f);
  classes[5] = 0;
  ASSERT_OK(model->SetInputs(inputs.data(), classes.data(), 2));
  const LossResult loss = model.Forward(true, 0, 1);
  EXPECT_NEAR(loss.loss_sum, 2 * std::log(5), 1e-5);
  EXPECT_NEAR(loss.correct, 2.0 / 3, 1e-12);
}

TEST(ModelTest, BatchAfterAnUnfinishedOneIsUnaffectedByIt) {
  TestModel used(kLanguageModel, 2, 1), fresh(kLanguageModel, 2, 1);
  const std::vector<float> inputs = {0, 1, 6, 6, 2, 0};
  const std::vector<int32_t> classes = {0, 1, 2, 3, 4, 0};
  ASSERT_OK(used->SetInputs(inputs.data() + 3, classes.data(), 1));
  used.Forward(true, 1, 1);
  // In the middle of the block, where both branches have left gradients.
  for (int i = used->layers() - 1; i > 4; --i) ASSERT_OK(used->BackwardLayer(i, false));
  for (TestModel* model : {&used, &fresh}) {
    ASSERT_OK((*model)->SetInputs(inputs.data(), classes.data(), 2));
    model->Forward(true, 2, 1);
    model->Backward(false);
  }
  for (int i = 0; i < used.tensors(); ++i) EXPECT_EQ(Gradient(used, i), Gradient(fresh, i));
}

TEST(ModelTest, RefusesLayersOutOfOrder) {
  TestModel model(kClassifier, 2, 1);
  const std::vector<float> inputs(4);
  const int32_t label = 1;
  EXPECT_EQ(model->ForwardLayer(0, true, 0).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK(model->SetInputs(inputs.data(), &label, 1));
  EXPECT_EQ(model->ForwardLayer(1, true, 0).message(), "ForwardLayer: layer 1 was asked for and layer 0 of 3 is next");
  ASSERT_OK(model->ForwardLayer(0, true, 0));
  EXPECT_EQ(model->ComputeLoss(1).status().message(), "ComputeLoss: layer 1 of 3 has not run");
  EXPECT_EQ(model->EvaluateBatch().status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK(model->ForwardLayer(1, true, 0));
  ASSERT_OK(model->ForwardLayer(2, true, 0));
  EXPECT_EQ(model->ForwardLayer(3, true, 0).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(model->BackwardLayer(2, false).message()), HasSubstr("the loss has not been computed"));
  ASSERT_OK(model->ComputeLoss(1).status());
  EXPECT_THAT(std::string(model->BackwardLayer(1, false).message()), HasSubstr("layer 2 is next"));
  ASSERT_OK(model->BackwardLayer(2, false));
  ASSERT_OK(model->BackwardLayer(1, false));
  ASSERT_OK(model->BackwardLayer(0, false));
  EXPECT_EQ(model->BackwardLayer(0, false).code(), absl::StatusCode::kFailedPrecondition);
}

// Two layers that are worth parts.
constexpr char kLargeLayers[] = R"pb(
  input_shape: 600
  layers { linear { units: 300 } }
  layers { tanh {} }
  layers { linear { units: 300 } }
  layers { tanh {} }
  layers { linear { units: 3 } }
  loss: SOFTMAX_CROSS_ENTROPY
)pb";

TEST(ModelTest, PartsOfALayerUseNoMoreOfItsWeightsThanTheySay) {
  const std::vector<float> inputs = RandomFloats(5 * 600, 1);
  const std::vector<int32_t> classes = {0, 1, 2, 0, 1};
  TestModel whole(kLargeLayers, 5, 1), parted(kLargeLayers, 5, 1);
  ASSERT_OK(whole->SetInputs(inputs.data(), classes.data(), 5));
  const LossResult expected = whole.Forward(true, 0, 1.0f / 5);
  whole.Backward(false);

  // What is not there yet, or not needed any more.
  const float none = std::nanf("");
  ASSERT_OK(parted->SetInputs(inputs.data(), classes.data(), 5));
  for (int layer = 0; layer < 5; ++layer) {
    const int parts = parted->parts(layer);
    EXPECT_EQ(parts, layer == 0 ? 3 : layer == 2 ? 2 : 1);
    const int tensor = layer;  // Each layer with weights has two, and each other layer none.
    int64_t end = 0;
    if (parts > 1) std::fill_n(parted.weight(tensor), parted->weight(tensor).elements(), none);
    for (int part = 0; part < parts; ++part) {
      if (parts > 1) {
        std::copy(whole.weight(tensor) + end, whole.weight(tensor) + parted->PartEnd(layer, part),
                  parted.weight(tensor) + end);
        end = parted->PartEnd(layer, part);
      }
      ASSERT_OK(parted->ForwardPart(layer, part, true, 0));
    }
    EXPECT_EQ(end, parts > 1 ? parted->weight(tensor).elements() : 0);
  }
  const absl::StatusOr<LossResult> loss = parted->ComputeLoss(1.0f / 5);
  ASSERT_OK(loss.status());
  EXPECT_EQ(loss->loss_sum, expected.loss_sum);
  for (int layer = 4; layer >= 0; --layer) {
    const int parts = parted->parts(layer), tensor = layer;
    for (int part = 0; part < parts; ++part) {
      ASSERT_OK(parted->BackwardPart(layer, part, false));
      if (parts == 1) continue;
      const int64_t end = parted->PartEnd(layer, part);
      EXPECT_TRUE(std::equal(parted.gradient(tensor), parted.gradient(tensor) + end, whole.gradient(tensor)));
      std::fill_n(parted.weight(tensor), end, none);
    }
  }
  for (int i = 0; i < whole.tensors(); ++i) EXPECT_EQ(Gradient(parted, i), Gradient(whole, i)) << i;
}

TEST(ModelTest, DeferredGradientsAreTheSame) {
  const std::vector<float> inputs = RandomFloats(5 * 600, 1);
  const std::vector<int32_t> classes = {0, 1, 2, 0, 1};
  TestModel whole(kLargeLayers, 5, 1), deferred(kLargeLayers, 5, 1);
  for (TestModel* model : {&whole, &deferred}) {
    ASSERT_OK((*model)->SetInputs(inputs.data(), classes.data(), 5));
    model->Forward(true, 0, 1.0f / 5);
  }
  for (int layer = 4; layer >= 0; --layer) {
    ASSERT_OK(whole->BackwardLayer(layer, false));
    EXPECT_EQ(deferred->CanDefer(layer), layer == 2) << layer;
    if (layer != 2) {
      ASSERT_OK(deferred->BackwardLayer(layer, false));
      continue;
    }
    EXPECT_EQ(deferred->BackwardInput(0).code(), absl::StatusCode::kFailedPrecondition);
    ASSERT_OK(deferred->BackwardInput(2));
    EXPECT_EQ(deferred->BackwardPart(2, 1, false).message(),
              "BackwardPart: part 1 of layer 2 was asked for and part 0 is next");
  }
  // The weights are not needed any more.
  std::fill_n(deferred.weight(2), deferred->weight(2).elements(), std::nanf(""));
  for (int part = 0; part < deferred->parts(2); ++part) ASSERT_OK(deferred->BackwardPart(2, part, false));
  EXPECT_EQ(deferred->BackwardPart(2, 0, false).code(), absl::StatusCode::kFailedPrecondition);
  for (int i = 0; i < whole.tensors(); ++i) EXPECT_EQ(Gradient(deferred, i), Gradient(whole, i)) << i;
}

TEST(ModelTest, DefersOneLayerAtMostAndNoneThatHasBegun) {
  constexpr char kThree[] = R"pb(
    input_shape: 600
    layers { linear { units: 256 } }
    layers { linear { units: 512 } }
    layers { linear { units: 512 } }
    loss: SOFTMAX_CROSS_ENTROPY
  )pb";
  const std::vector<float> inputs = RandomFloats(600, 1);
  const int32_t label = 1;
  TestModel model(kThree, 1, 1);
  ASSERT_OK(model->SetInputs(inputs.data(), &label, 1));
  model.Forward(true, 0, 1);
  ASSERT_OK(model->BackwardInput(2));
  EXPECT_EQ(model->BackwardInput(1).message(), "BackwardInput: layer 1 cannot be deferred while layer 2 is");
  for (int part = 0; part < model->parts(2); ++part) ASSERT_OK(model->BackwardPart(2, part, false));
  ASSERT_OK(model->BackwardPart(1, 0, false));
  EXPECT_EQ(model->BackwardInput(1).message(), "BackwardInput: part 0 of layer 1 was asked for and part 1 is next");
  // What another batch has deferred is not this one's.
  ASSERT_OK(model->SetInputs(inputs.data(), &label, 1));
  model.Forward(true, 0, 1);
  ASSERT_OK(model->BackwardInput(2));
  ASSERT_OK(model->SetInputs(inputs.data(), &label, 1));
  model.Forward(true, 0, 1);
  ASSERT_OK(model->BackwardLayer(2, false));
  ASSERT_OK(model->BackwardInput(1));
}

TEST(ModelTest, RefusesPartsOutOfOrder) {
  const std::vector<float> inputs = RandomFloats(600, 1);
  const int32_t label = 1;
  TestModel model(kLargeLayers, 1, 1);
  ASSERT_OK(model->SetInputs(inputs.data(), &label, 1));
  EXPECT_EQ(model->ForwardPart(0, 1, true, 0).message(),
            "ForwardPart: part 1 of layer 0 was asked for and part 0 is next");
  ASSERT_OK(model->ForwardPart(0, 0, true, 0));
  EXPECT_EQ(model->ForwardPart(1, 0, true, 0).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(model->ForwardLayer(0, true, 0).code(), absl::StatusCode::kFailedPrecondition);
  // Another batch begins from the first part.
  ASSERT_OK(model->SetInputs(inputs.data(), &label, 1));
  model.Forward(true, 0, 1);
  for (int layer : {4, 3}) ASSERT_OK(model->BackwardLayer(layer, false));
  ASSERT_OK(model->BackwardPart(2, 0, false));
  EXPECT_EQ(model->BackwardPart(2, 0, false).message(),
            "BackwardPart: part 0 of layer 2 was asked for and part 1 is next");
  EXPECT_EQ(model->BackwardLayer(1, false).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK(model->BackwardPart(2, 1, false));
  ASSERT_OK(model->BackwardLayer(1, false));
}

TEST(ModelTest, MicroBatchesAddUpToTheGradientOfTheBatch) {
  constexpr char kConfig[] = R"pb(
    input_shape: [ 2, 5, 5 ]
    layers { conv2d { filters: 3 kernel: 2 } }
    layers { layer_norm {} }
    layers { relu {} }
    layers { linear { units: 4 } }
    loss: SOFTMAX_CROSS_ENTROPY
  )pb";
  const std::vector<float> inputs = RandomFloats(8 * 50, 1);
  const std::vector<int32_t> classes = {0, 1, 2, 3, 0, 1, 2, 3};
  TestModel whole(kConfig, 8, 1), split(kConfig, 5, 1);
  ASSERT_OK(whole->SetInputs(inputs.data(), classes.data(), 8));
  const LossResult expected = whole.Forward(true, 0, 1.0f / 8);
  whole.Backward(false);
  ASSERT_OK(split->SetInputs(inputs.data(), classes.data(), 5));
  LossResult loss = split.Forward(true, 0, 1.0f / 8);
  split.Backward(false);
  ASSERT_OK(split->SetInputs(inputs.data() + 5 * 50, classes.data() + 5, 3));
  const LossResult rest = split.Forward(true, 0, 1.0f / 8);
  split.Backward(true);
  EXPECT_NEAR(loss.loss_sum + rest.loss_sum, expected.loss_sum, 1e-5);
  EXPECT_EQ(loss.correct + rest.correct, expected.correct);
  for (int i = 0; i < whole.tensors(); ++i) ExpectNear(Gradient(split, i), Gradient(whole, i));
}

// Models whose input has rows, each of whose elements may go through several layers.
TEST(ModelTest, TheGradientOfTheInputHasATermOfEachLayerThatTakesIt) {
  const char* const kLayers[] = {
      "layers { linear { units: 3 } }",
      "layers { residual { layers { linear { units: 8 } } layers { tanh {} } } }",
      "layers { cross { layers: 2 } }",
      "layers { dot_interaction { width: 2 } }",
      "layers { factorization_machine { width: 4 } }",
      // What no branch takes has no effect.
      "layers { branches { branches { begin: 5 layers { linear { units: 2 } } } branches { begin: 2 end: 6 } } }",
      "layers { branches { branches { end: 4 layers { linear { units: 4 } } layers { tanh {} } } branches { begin: 4 } "
      "branches { layers { linear { units: 2 } } } } } layers { dot_interaction { width: 2 } }",
  };
  for (const char* const layers : kLayers) {
    SCOPED_TRACE(layers);
    TestModel model(
        absl::StrCat("input_shape: 4 tables { name: \"t\" dimension: 2 keys_per_example: 2 algorithm: SGD ",
                     "learning_rate: 1 } ", layers, " layers { linear { units: 1 } } ", "loss: BINARY_CROSS_ENTROPY"),
        3, 1);
    std::vector<float> inputs = RandomFloats(3 * 8, 4);
    const std::vector<int32_t> classes = {0, 1, 1};
    ASSERT_OK(model->SetInputs(inputs.data(), classes.data(), 3));
    model.Forward(true, 0, 1);
    model.Backward(false);
    const absl::StatusOr<const float*> found = model->AwaitInputGradient();
    ASSERT_OK(found.status());
    const std::vector<float> gradient(*found, *found + inputs.size());
    const auto loss_with = [&](size_t at, float change) {
      std::vector<float> changed = inputs;
      changed[at] += change;
      EXPECT_TRUE(model->SetInputs(changed.data(), classes.data(), 3).ok());
      return model.Forward(true, 0, 1).loss_sum;
    };
    for (size_t i = 0; i < inputs.size(); ++i) {
      constexpr float kStep = 1e-2f;
      EXPECT_NEAR(gradient[i], (loss_with(i, kStep) - loss_with(i, -kStep)) / (2 * kStep), 2e-3) << "element " << i;
    }
  }
}

TEST(ModelTest, SmallerBatchAfterALargerOneIsUnaffectedByIt) {
  TestModel used(kClassifier, 5, 1), fresh(kClassifier, 5, 1);
  const std::vector<float> inputs = RandomFloats(20, 1);
  const std::vector<int32_t> classes = {0, 1, 2, 0, 1};
  ASSERT_OK(used->SetInputs(inputs.data(), classes.data(), 5));
  used.Forward(true, 1, 1);
  used.Backward(false);
  for (TestModel* model : {&used, &fresh}) {
    ASSERT_OK((*model)->SetInputs(inputs.data() + 8, classes.data() + 2, 2));
    model->Forward(true, 2, 1);
    model->Backward(false);
  }
  for (int i = 0; i < used.tensors(); ++i) EXPECT_EQ(Gradient(used, i), Gradient(fresh, i));
}

TEST(ModelTest, DropoutDependsOnSeedAndStreamAndIsOffInEvaluation) {
  const std::vector<float> inputs = RandomFloats(20, 1);
  const std::vector<int32_t> classes = {0, 1, 2, 0, 1};
  TestModel model(kClassifier, 5, 1), same_seed(kClassifier, 5, 1);
  auto loss = [&](TestModel& m, bool training, uint64_t stream) {
    EXPECT_TRUE(m->SetInputs(inputs.data(), classes.data(), 5).ok());
    return m.Forward(training, stream, 1).loss_sum;
  };
  EXPECT_EQ(loss(model, true, 1), loss(same_seed, true, 1));
  EXPECT_NE(loss(model, true, 1), loss(model, true, 2));
  ASSERT_OK(model->SetInputs(inputs.data(), classes.data(), 5));
  absl::StatusOr<LossResult> evaluated = model->EvaluateBatch();
  ASSERT_OK(evaluated.status());
  EXPECT_EQ(evaluated->loss_sum, loss(model, false, 1));
  EXPECT_NE(evaluated->loss_sum, loss(model, true, 1));
}

TEST(ModelTest, LayersOfDropoutHaveMasksOfTheirOwn) {
  // With one mask for both, keeping a half twice would keep a half; with two, it keeps a quarter.
  TestModel model(R"pb(
                    input_shape: 1
                    layers { linear { units: 4000 no_bias: true } }
                    layers { dropout { rate: 0.5 } }
                    layers { dropout { rate: 0.5 } }
                    loss: MEAN_SQUARED_ERROR
                  )pb",
                  1, 1);
  const float input = 1;
  const std::vector<float> targets(4000);
  ASSERT_OK(model->SetInputs(&input, targets.data(), 1));
  model.Forward(true, 9, 1);
  const float* output = model.backend().HostPointer(model->output());
  EXPECT_NEAR(std::count(output, output + 4000, 0.0f), 3000, 150);
}

TEST(ModelTest, SameSeedGivesTheSameBits) {
  const std::vector<float> inputs = RandomFloats(20, 1);
  const std::vector<int32_t> classes = {0, 1, 2, 0, 1};
  TestModel first(kClassifier, 5, 1), second(kClassifier, 5, 1);
  for (TestModel* model : {&first, &second}) {
    for (int step = 0; step < 3; ++step) {
      ASSERT_OK((*model)->SetInputs(inputs.data(), classes.data(), 5));
      model->Forward(true, step, 0.2f);
      model->Backward(false);
      model->SgdStep(0.1f);
    }
  }
  for (int i = 0; i < first.tensors(); ++i) EXPECT_EQ(Gradient(first, i), Gradient(second, i));
}

}  // namespace
}  // namespace rubato::worker
