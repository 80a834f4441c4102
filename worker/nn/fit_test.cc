#include <algorithm>
#include <cmath>

#include "common/random.h"
#include "worker/nn/model_test_util.h"

namespace rubato::worker {
namespace {

// Fits `examples` by plain gradient descent, one batch after another, and returns the result on all of them.
LossResult Fit(TestModel& model, const std::vector<float>& inputs, const std::vector<int32_t>& classes,
               int64_t batch_size, int epochs, float learning_rate) {
  const int64_t width = NumElements(model->spec().input), examples = static_cast<int64_t>(classes.size());
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (int64_t at = 0; at < examples; at += batch_size) {
      const int64_t n = std::min(batch_size, examples - at);
      EXPECT_TRUE(model->SetInputs(&inputs[at * width], &classes[at], n).ok());
      model.Forward(true, StreamId("step", epoch, at), 1.0f / static_cast<float>(n));
      model.Backward(false);
      model.SgdStep(learning_rate);
    }
  }
  EXPECT_TRUE(model->SetInputs(inputs.data(), classes.data(), examples).ok());
  absl::StatusOr<LossResult> result = model->EvaluateBatch();
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

// Two interleaved spirals: not separable by a line.
TEST(FitTest, MlpLearnsTwoSpirals) {
  constexpr int kExamples = 400;
  Random random(1);
  std::vector<float> inputs;
  std::vector<int32_t> classes;
  for (int i = 0; i < kExamples; ++i) {
    const double turn = 0.3 + 1.2 * random.Uniform();
    const double angle = 3.14159 * (2 * turn + (i % 2));
    inputs.push_back(static_cast<float>(turn * std::cos(angle)));
    inputs.push_back(static_cast<float>(turn * std::sin(angle)));
    classes.push_back(i % 2);
  }
  TestModel model(R"pb(
                    input_shape: 2
                    layers { linear { units: 32 } }
                    layers { relu {} }
                    layers { linear { units: 32 } }
                    layers { tanh {} }
                    layers { linear { units: 2 } }
                    loss: SOFTMAX_CROSS_ENTROPY
                  )pb",
                  kExamples, 2);
  const LossResult result = Fit(model, inputs, classes, 20, 200, 0.1f);
  EXPECT_GE(result.correct, kExamples * 98 / 100);
  EXPECT_LT(result.loss_sum / kExamples, 0.1);
}

// Noisy images with a short bar in a random place; the class is the bar's direction.
TEST(FitTest, CnnLearnsTheDirectionOfABar) {
  constexpr int kExamples = 300, kSide = 12;
  Random random(2);
  std::vector<float> inputs(kExamples * kSide * kSide);
  std::vector<int32_t> classes;
  for (float& value : inputs) value = 0.2f * static_cast<float>(random.Normal());
  for (int i = 0; i < kExamples; ++i) {
    const int label = static_cast<int>(random.Below(3));
    const int row = static_cast<int>(random.Below(kSide - 4)), column = static_cast<int>(random.Below(kSide - 4));
    for (int k = 0; k < 5; ++k) {
      const int r = row + (label != 0 ? k : 2), c = column + (label != 1 ? k : 2);
      inputs[(i * kSide + r) * kSide + c] += 1;
    }
    classes.push_back(label);
  }
  TestModel model(R"pb(
                    input_shape: [ 1, 12, 12 ]
                    layers { conv2d { filters: 6 kernel: 3 padding: 1 } }
                    layers { relu {} }
                    layers { max_pool2d { window: 2 } }
                    layers { conv2d { filters: 8 kernel: 3 } }
                    layers { relu {} }
                    layers { average_pool2d { window: 2 } }
                    layers { flatten {} }
                    layers { dropout { rate: 0.1 } }
                    layers { linear { units: 3 } }
                    loss: SOFTMAX_CROSS_ENTROPY
                  )pb",
                  kExamples, 3);
  const LossResult result = Fit(model, inputs, classes, 20, 30, 0.1f);
  EXPECT_GE(result.correct, kExamples * 98 / 100);
  EXPECT_LT(result.loss_sum / kExamples, 0.15);
}

}  // namespace
}  // namespace rubato::worker
