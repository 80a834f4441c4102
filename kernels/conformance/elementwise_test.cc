#include <cmath>

#include "kernels/conformance/harness.h"

namespace rubato::conformance {
namespace {

TEST_P(ConformanceTest, ActivationsMatchReference) {
  Values x = RandomValues(2001), dy = RandomValues(2001);
  // Also far from zero, where they saturate.
  for (size_t i = 0; i < 200; ++i) x[i] = AsActivation(x[i] * 10);
  for (Activation activation : AllActivations()) {
    SCOPED_TRACE(static_cast<int>(activation));
    Values y(x.size()), dx(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      y[i] = reference::Activate(activation, x[i]);
      dx[i] = dy[i] * reference::ActivateDerivative(activation, x[i]);
    }
    DeviceTensor device_x = UploadActivation({3, 667}, x), device_y = UnwrittenActivation({3, 667});
    DeviceTensor gradient = UploadActivation({3, 667}, dy);
    EXPECT_OK(backend_->Activate(activation, device_x, device_y));
    ExpectClose(device_y, y, "y");
    // In place, over dy.
    EXPECT_OK(backend_->ActivateBackward(activation, device_x, device_y, gradient, gradient));
    ExpectClose(gradient, dx, "dx");
    EXPECT_OK(backend_->Activate(activation, device_x, device_x));
    ExpectClose(device_x, y, "y in place");
  }
}

TEST_P(ConformanceTest, ActivationsAreRelativelyPreciseNearZeroAndKeepNaN) {
  for (Activation activation : {Activation::kTanh, Activation::kGelu}) {
    for (double x : {1e-30, 1e-6, -1e-3, -0.1, 0.7, -3.0}) {
      DeviceTensor y = Unwritten({1});
      EXPECT_OK(backend_->Activate(activation, Upload({1}, {x}), y));
      const double expected = reference::Activate(activation, static_cast<float>(x));
      EXPECT_NEAR(Download(y)[0] / expected, 1, kTolerance) << x;
    }
  }
  for (Activation activation : AllActivations()) {
    DeviceTensor nan = Unwritten({5});
    EXPECT_OK(backend_->Activate(activation, nan, nan));
    EXPECT_TRUE(std::isnan(Download(nan)[4])) << static_cast<int>(activation);
  }
}

TEST_P(ConformanceTest, DropoutFollowsItsMaskDefinition) {
  const int64_t n = 4003;
  const DropoutMask mask = {.rate = 0.3, .seed = 77, .stream = 5};
  const Values x = RandomValues(n);
  Values expected(n);
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bool keep = PhiloxBlock(mask.seed, mask.stream, i / 4)[i % 4] >= mask.rate * 0x1p32;
    expected[i] = keep ? x[i] / 0.7 : 0;
    kept += keep;
  }
  EXPECT_NEAR(static_cast<double>(kept) / n, 0.7, 0.03);
  DeviceTensor y = Unwritten({n});
  EXPECT_OK(backend_->Dropout(mask, Upload({n}, x), y));
  ExpectClose(y, expected, "y");
  DeviceTensor activation = UploadActivation({n}, x);
  EXPECT_OK(backend_->Dropout(mask, activation, activation));
  ExpectClose(activation, expected, "an activation, in place");

  DropoutMask other = mask;
  other.stream = 6;
  DeviceTensor z = Unwritten({n});
  EXPECT_OK(backend_->Dropout(other, Upload({n}, x), z));
  EXPECT_NE(Download(y), Download(z));
}

TEST_P(ConformanceTest, LayerNormMatchesReference) {
  // Rows of whole packs and others, of a warp and of a block.
  for (Shape shape : {Shape{5, 37}, Shape{2, 3, 4, 5}, Shape{1, 1}, Shape{19, 768}, Shape{3, 2500}, Shape{2, 2307}}) {
    SCOPED_TRACE(ShapeText(shape));
    const Shape row(shape.begin() + 1, shape.end());
    const int64_t rows = shape[0], columns = NumElements(row);
    Values x = RandomValues(rows * columns), dy = RandomValues(rows * columns);
    for (double& value : x) value = AsActivation(3 + 2 * value);
    const Values gain = RandomValues(columns), bias = RandomValues(columns), before = RandomValues(columns);
    DeviceTensor device_x = UploadActivation(shape, x), device_gain = Upload(row, gain);
    DeviceTensor device_dy = UploadActivation(shape, dy);
    DeviceTensor y = UnwrittenActivation(shape), mean = Unwritten({rows}), inverse = Unwritten({rows});
    EXPECT_OK(backend_->LayerNorm(1e-3f, device_x, device_gain, Upload(row, bias), y, mean, inverse));
    const auto forward = reference::LayerNorm(1e-3f, rows, x, gain, bias);
    ExpectClose(y, forward.y, "y");
    ExpectClose(mean, forward.mean, "mean");
    ExpectClose(inverse, forward.inverse_deviation, "inverse deviation");

    DeviceTensor dgain = Unwritten(row), dbias = Upload(row, before);
    auto backward = reference::LayerNormBackward(1e-3f, rows, x, gain, dy);
    EXPECT_OK(backend_->LayerNormBackward(device_x, device_gain, mean, inverse, device_dy, false, false, DeviceTensor(),
                                          dgain, dbias));
    ExpectClose(dgain, backward.dgain, "dgain");
    ExpectClose(dbias, backward.dbias, "dbias");
    const Values other = RandomValues(rows * columns);
    Values sum = other;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += backward.dx[i];
    DeviceTensor device_sum = UploadActivation(shape, other), again = Unwritten(row);
    EXPECT_OK(backend_->LayerNormBackward(device_x, device_gain, mean, inverse, device_dy, false, true, device_sum,
                                          again, again));
    ExpectClose(device_sum, sum, "dx added");
    // Again, adding to what is there, and dx over dy.
    EXPECT_OK(backend_->LayerNormBackward(device_x, device_gain, mean, inverse, device_dy, true, false, device_dy,
                                          dgain, dbias));
    ExpectClose(device_dy, backward.dx, "dx");
    for (double& value : backward.dgain) value *= 2;
    for (double& value : backward.dbias) value *= 2;
    ExpectClose(dgain, backward.dgain, "accumulated dgain");
    ExpectClose(dbias, backward.dbias, "accumulated dbias");
  }
}

TEST_P(ConformanceTest, SoftmaxCrossEntropyMatchesReference) {
  for (int64_t columns : {2, 10, 1001}) {
    const int64_t rows = 19;
    Values logits = RandomValues(rows * columns);
    // Some rows that would overflow without the shift, and some that are certain.
    for (int64_t i = 0; i < 3 * columns; ++i) logits[i] = static_cast<float>(logits[i] * 100);
    std::vector<int32_t> classes(rows);
    for (int32_t& label : classes) label = static_cast<int32_t>(random_.Below(columns));
    const auto expected = reference::SoftmaxCrossEntropy(logits, classes, 0.25);
    DeviceTensor device_logits = Upload({rows, columns}, logits), gradient = Unwritten({rows, columns});
    DeviceTensor labels = UploadInts({rows}, classes), sums = Empty({2}, ElementType::kFloat64);
    EXPECT_OK(backend_->SoftmaxCrossEntropy(device_logits, labels, 0.25f, gradient, sums));
    EXPECT_NEAR(Download(sums)[0], expected.loss_sum, kTolerance * expected.loss_sum);
    EXPECT_EQ(Download(sums)[1], static_cast<double>(expected.correct));
    ExpectClose(gradient, expected.gradient, "gradient");
    EXPECT_OK(backend_->SoftmaxCrossEntropy(device_logits, labels, 0.25f, device_logits, sums));
    ExpectClose(device_logits, expected.gradient, "gradient in place");
  }
}

TEST_P(ConformanceTest, SoftmaxCrossEntropyOfNaNIsNaNAndNotCorrect) {
  DeviceTensor sums = Empty({2}, ElementType::kFloat64);
  EXPECT_OK(backend_->SoftmaxCrossEntropy(Unwritten({1, 3}), UploadInts({1}, {0}), 1, DeviceTensor(), sums));
  EXPECT_TRUE(std::isnan(Download(sums)[0]));
  EXPECT_EQ(Download(sums)[1], 0);
}

TEST_P(ConformanceTest, BinaryCrossEntropyMatchesReference) {
  // More than a block of them.
  const int64_t rows = 1003;
  Values logits = RandomValues(rows);
  // Some whose exponential would overflow.
  for (int64_t i = 0; i < 20; ++i) logits[i] = static_cast<float>(logits[i] * 1000);
  logits[20] = 0;
  std::vector<int32_t> classes(rows);
  for (int32_t& label : classes) label = static_cast<int32_t>(random_.Below(2));
  const auto expected = reference::BinaryCrossEntropy(logits, classes, 0.25);
  DeviceTensor device_logits = Upload({rows, 1}, logits), gradient = Unwritten({rows, 1});
  DeviceTensor labels = UploadInts({rows}, classes), sums = Empty({2}, ElementType::kFloat64);
  EXPECT_OK(backend_->BinaryCrossEntropy(device_logits, labels, 0.25f, gradient, sums));
  EXPECT_NEAR(Download(sums)[0], expected.loss_sum, kTolerance * expected.loss_sum);
  EXPECT_EQ(Download(sums)[1], static_cast<double>(expected.correct));
  ExpectClose(gradient, expected.gradient, "gradient");
  EXPECT_OK(backend_->BinaryCrossEntropy(device_logits, labels, 0.25f, DeviceTensor(), sums));
  EXPECT_EQ(Download(sums)[1], static_cast<double>(expected.correct)) << "without a gradient";
  EXPECT_OK(backend_->BinaryCrossEntropy(device_logits, labels, 0.25f, device_logits, sums));
  ExpectClose(device_logits, expected.gradient, "gradient in place");
}

TEST_P(ConformanceTest, BinaryCrossEntropyIsPreciseWhereItIsSmall) {
  DeviceTensor gradient = Unwritten({2, 1}), sums = Empty({2}, ElementType::kFloat64);
  EXPECT_OK(backend_->BinaryCrossEntropy(Upload({2, 1}, {30, -30}), UploadInts({2}, {1, 0}), 1, gradient, sums));
  EXPECT_NEAR(Download(sums)[0] / (2 * std::exp(-30)), 1, 1e-6);
  EXPECT_NEAR(Download(gradient)[0] / -std::exp(-30), 1, 1e-6);
  EXPECT_NEAR(Download(gradient)[1] / std::exp(-30), 1, 1e-6);
}

TEST_P(ConformanceTest, BinaryCrossEntropyOfNaNIsNaNAndNotCorrect) {
  DeviceTensor sums = Empty({2}, ElementType::kFloat64);
  for (const int32_t label : {0, 1}) {
    EXPECT_OK(backend_->BinaryCrossEntropy(Unwritten({1, 1}), UploadInts({1}, {label}), 1, DeviceTensor(), sums));
    EXPECT_TRUE(std::isnan(Download(sums)[0])) << label;
    EXPECT_EQ(Download(sums)[1], 0) << label;
  }
}

TEST_P(ConformanceTest, BinaryCrossEntropyTakesOneLogitOfEachExample) {
  EXPECT_EQ(backend_
                ->BinaryCrossEntropy(Empty({3, 2}), UploadInts({3}, {0, 1, 0}), 1, DeviceTensor(),
                                     Empty({2}, ElementType::kFloat64))
                .message(),
            "BinaryCrossEntropy: logits is float32 [3x2], expected float32 [3x1]");
}

TEST_P(ConformanceTest, MeanSquaredErrorMatchesReference) {
  const int64_t rows = 11, columns = 7;
  const Values outputs = RandomValues(rows * columns), targets = RandomValues(rows * columns);
  const auto expected = reference::MeanSquaredError(rows, outputs, targets, 0.5);
  DeviceTensor gradient = Unwritten({rows, columns}), sums = Empty({2}, ElementType::kFloat64);
  DeviceTensor device_outputs = Upload({rows, columns}, outputs), device_targets = Upload({rows, columns}, targets);
  EXPECT_OK(backend_->MeanSquaredError(device_outputs, device_targets, 0.5f, gradient, sums));
  EXPECT_NEAR(Download(sums)[0], expected.loss_sum, kTolerance * expected.loss_sum);
  EXPECT_EQ(Download(sums)[1], 0);
  ExpectClose(gradient, expected.gradient, "gradient");
}

INSTANTIATE_TEST_SUITE_P(Elementwise, ConformanceTest, ::testing::ValuesIn(AllBackends()), CaseName);

}  // namespace
}  // namespace rubato::conformance
