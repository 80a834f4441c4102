#include <cmath>

#include "kernels/conformance/harness.h"

namespace rubato::conformance {
namespace {

struct GemmCase {
  int64_t m, n, k;
};

TEST_P(ConformanceTest, GemmMatchesReferenceForEveryTransposition) {
  for (GemmCase s : {GemmCase{1, 1, 1}, {3, 5, 7}, {64, 10, 33}, {17, 128, 300}, {64, 1, 9}}) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      SCOPED_TRACE(::testing::Message() << s.m << "x" << s.n << "x" << s.k << " transposed " << transposed);
      const bool ta = transposed & 1, tb = transposed & 2;
      const Values a = RandomValues(s.m * s.k), b = RandomValues(s.k * s.n), c = RandomValues(s.m * s.n);
      DeviceTensor da = UploadActivation(ta ? Shape{s.k, s.m} : Shape{s.m, s.k}, a);
      DeviceTensor db = UploadActivation(tb ? Shape{s.n, s.k} : Shape{s.k, s.n}, b);
      DeviceTensor dc = UploadActivation({s.m, s.n}, c);
      EXPECT_OK(backend_->Gemm(ta, tb, 0.5f, da, db, 2, dc));
      ExpectClose(dc, reference::Gemm(ta, tb, s.m, s.n, s.k, 0.5, a, b, 2, c), "c with beta 2");

      DeviceTensor fresh = UnwrittenActivation({s.m, s.n});
      EXPECT_OK(backend_->Gemm(ta, tb, 1, da, db, 0, fresh));
      const Values expected = reference::Gemm(ta, tb, s.m, s.n, s.k, 1, a, b, 0, c);
      ExpectClose(fresh, expected, "c with beta 0");
      DeviceTensor floats = Unwritten({s.m, s.n});
      EXPECT_OK(backend_->Gemm(ta, tb, 1, da, db, 0, floats));
      ExpectClose(floats, expected, "c in float32");
    }
  }
}

TEST_P(ConformanceTest, GemmTakesAllDimensionsAfterTheFirstAsColumns) {
  const Values a = RandomValues(4 * 12), b = RandomValues(5 * 12);
  DeviceTensor c = UnwrittenActivation({4, 5});
  EXPECT_OK(backend_->Gemm(false, true, 1, UploadActivation({4, 3, 2, 2}, a), UploadActivation({5, 12}, b), 0, c));
  ExpectClose(c, reference::Gemm(false, true, 4, 5, 12, 1, a, b, 0, Values(20)), "c");
}

TEST_P(ConformanceTest, FillAndAxpyAddUp) {
  const Values x = RandomValues(1003);
  Values expected(x.size());
  for (size_t i = 0; i < x.size(); ++i) expected[i] = 3 - 2 * x[i];
  DeviceTensor y = Unwritten({1003}), activation = UnwrittenActivation({1003});
  EXPECT_OK(backend_->Fill(3, y));
  EXPECT_OK(backend_->Axpy(-2, Upload({1003}, x), y));
  ExpectClose(y, expected, "y");
  EXPECT_OK(backend_->Fill(3, activation));
  EXPECT_OK(backend_->Axpy(-2, UploadActivation({1003}, x), activation));
  ExpectClose(activation, expected, "an activation");
}

TEST_P(ConformanceTest, CopyRoundsToNearestEven) {
  const ElementType type = backend_->ActivationType();
  if (type == ElementType::kFloat32) return;  // Nothing is rounded.
  // Halfway to the even one below and above it, just over halfway, and what is too large or none.
  const double unit = type == ElementType::kBfloat16 ? 0x1p-7 : 0x1p-10;
  const Values x = {1 + unit / 2, 1 + 3 * unit / 2, 1 + unit * 0.501, -1 - unit / 2, 3e38, -HUGE_VAL, std::nan("")};
  DeviceTensor rounded = EmptyActivation({7}), back = Unwritten({7});
  EXPECT_OK(backend_->Copy(Upload({7}, x), rounded));
  EXPECT_OK(backend_->Copy(rounded, back));
  const Values y = Download(back);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 1 + 2 * unit);
  EXPECT_EQ(y[2], 1 + unit);
  EXPECT_EQ(y[3], -1);
  EXPECT_EQ(y[4], type == ElementType::kFloat16 ? HUGE_VAL : static_cast<double>(0x1.c4p+127));
  EXPECT_EQ(y[5], -HUGE_VAL);
  EXPECT_TRUE(std::isnan(y[6]));
}

TEST_P(ConformanceTest, SixteenBitsAreRefusedWhereTheyAreNotForActivations) {
  for (ElementType type : {ElementType::kBfloat16, ElementType::kFloat16}) {
    if (type == backend_->ActivationType()) continue;
    EXPECT_EQ(backend_->Allocate({3}, type).status().code(), absl::StatusCode::kInvalidArgument) << TypeName(type);
  }
}

TEST_P(ConformanceTest, ProductsTakeOperandsOfTheActivationType) {
  if (backend_->ActivationType() == ElementType::kFloat32) return;  // All types are alike.
  EXPECT_EQ(backend_->Linear(Empty({4, 3}), EmptyActivation({2, 3}), DeviceTensor(), EmptyActivation({4, 2})).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->Gemm(false, true, 1, EmptyActivation({4, 3}), Empty({2, 3}), 0, Empty({4, 2})).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->Add(Empty({4}), EmptyActivation({4}), Empty({4})).code(), absl::StatusCode::kInvalidArgument);
}

// An integer division by the number of channels ended the program.
TEST_P(ConformanceTest, NoChannelsAreNothingToDo) {
  const DeviceTensor none = Empty({0}), y = EmptyActivation({4, 0, 3});
  EXPECT_OK(backend_->AddBias(none, y));
  EXPECT_OK(backend_->BiasGradient(y, false, none));
  EXPECT_OK(backend_->Synchronize());
}

TEST_P(ConformanceTest, CopyAndAddWriteEveryElement) {
  const Values a = RandomValues(1003), b = RandomValues(1003);
  DeviceTensor y = UnwrittenActivation({1003}), device_a = UploadActivation({1003}, a);
  DeviceTensor device_b = UploadActivation({1003}, b);
  EXPECT_OK(backend_->Copy(device_a, y));
  EXPECT_EQ(Download(y), a);
  Values expected(a.size());
  for (size_t i = 0; i < a.size(); ++i) expected[i] = a[i] + b[i];
  EXPECT_OK(backend_->Add(device_a, device_b, y));
  ExpectClose(y, expected, "y");
  EXPECT_OK(backend_->Add(device_a, device_b, device_a));
  ExpectClose(device_a, expected, "y in the place of a");
  EXPECT_EQ(backend_->Add(device_a, Empty({17, 59}), y).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->Copy(device_a, Empty({17, 59})).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(ConformanceTest, ScaleByAPowerOfTwoIsExactAndKeepsWhatIsNotFinite) {
  const Values x = RandomValues(1003);
  Values expected = x;
  for (double& value : expected) value /= 65536;
  DeviceTensor y = Upload({1003}, x);
  EXPECT_OK(backend_->Scale(1.0f / 65536, y));
  EXPECT_EQ(Download(y), expected);
  DeviceTensor infinite = Upload({2}, {HUGE_VAL, 1}), nan = Unwritten({3}), sum = Empty({1}, ElementType::kFloat64);
  EXPECT_OK(backend_->Scale(0.5f, infinite));
  EXPECT_EQ(Download(infinite), (Values{HUGE_VAL, 0.5}));
  EXPECT_OK(backend_->Scale(0.5f, nan));
  EXPECT_TRUE(std::isnan(Download(nan)[2]));
  EXPECT_EQ(backend_->Scale(2, sum).code(), absl::StatusCode::kInvalidArgument);
}

// What tells an overflow: however large finite values are, the sum of their squares is finite.
TEST_P(ConformanceTest, SumOfSquaresIsFiniteWhereAllElementsAre) {
  Values x(3000, -3e38);
  DeviceTensor sum = Empty({1}, ElementType::kFloat64);
  EXPECT_OK(backend_->SumOfSquares(Upload({3000}, x), false, sum));
  EXPECT_TRUE(std::isfinite(Download(sum)[0]));
  for (double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    x[2999] = bad;
    EXPECT_OK(backend_->SumOfSquares(Upload({3000}, x), false, sum));
    EXPECT_FALSE(std::isfinite(Download(sum)[0])) << bad;
    // Also if a finite tensor is added.
    EXPECT_OK(backend_->SumOfSquares(Upload({1}, {1}), true, sum));
    EXPECT_FALSE(std::isfinite(Download(sum)[0])) << bad;
  }
}

TEST_P(ConformanceTest, NormOfSeveralTensorsClipsThem) {
  const Values a = RandomValues(100'003), b = RandomValues(7);
  DeviceTensor device_a = Upload({100'003}, a), device_b = Upload({7}, b), sum = Empty({1}, ElementType::kFloat64);
  EXPECT_OK(backend_->SumOfSquares(device_a, false, sum));
  EXPECT_OK(backend_->SumOfSquares(device_b, true, sum));
  double expected = 0;
  for (double value : a) expected += value * value;
  for (double value : b) expected += value * value;
  EXPECT_NEAR(Download(sum)[0], expected, 1e-9 * expected);
  // Under the limit nothing changes, not even a bit.
  EXPECT_OK(backend_->ScaleToNorm(static_cast<float>(2 * std::sqrt(expected)), sum, device_b));
  EXPECT_EQ(Download(device_b), b);
  Values scaled = a;
  for (double& value : scaled) value *= 3 / std::sqrt(expected);
  EXPECT_OK(backend_->ScaleToNorm(3, sum, device_a));
  ExpectClose(device_a, scaled, "scaled");
  EXPECT_EQ(backend_->ScaleToNorm(0, sum, device_a).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->SumOfSquares(device_a, false, Empty({1})).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(ConformanceTest, NormThatIsNotFiniteLeavesTheTensorAlone) {
  const Values x = RandomValues(7);
  DeviceTensor y = Upload({7}, x), sum = Empty({1}, ElementType::kFloat64);
  EXPECT_OK(backend_->SumOfSquares(Unwritten({7}), false, sum));
  EXPECT_OK(backend_->ScaleToNorm(1, sum, y));
  EXPECT_EQ(Download(y), x);
}

TEST_P(ConformanceTest, BiasIsAddedPerChannelAndItsGradientSumsOverTheRest) {
  for (Shape shape : {Shape{7, 13}, Shape{3, 5, 4, 6}, Shape{1, 1, 9, 9}}) {
    SCOPED_TRACE(ShapeText(shape));
    const int64_t channels = shape[1], inner = NumElements(shape) / shape[0] / channels;
    const Values bias = RandomValues(channels), values = RandomValues(NumElements(shape));
    Values sums = bias, added = values;
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t channel = static_cast<int64_t>(i) / inner % channels;
      added[i] += bias[channel];
      sums[channel] += values[i];
    }
    DeviceTensor y = UploadActivation(shape, values), gradient = Upload({channels}, bias);
    EXPECT_OK(backend_->BiasGradient(y, true, gradient));
    ExpectClose(gradient, sums, "accumulated gradient");
    for (int64_t i = 0; i < channels; ++i) sums[i] -= bias[i];
    EXPECT_OK(backend_->BiasGradient(y, false, gradient));
    ExpectClose(gradient, sums, "gradient");
    EXPECT_OK(backend_->AddBias(Upload({channels}, bias), y));
    ExpectClose(y, added, "y");
  }
}

struct LinearCase {
  int64_t rows, inputs, units;
};

// Sizes that devices' libraries like, and others.
std::vector<LinearCase> LinearCases() {
  return {{1, 1, 1}, {6, 8, 12}, {32, 20, 16}, {33, 20, 16}, {5, 7, 3}, {130, 64, 10}};
}

TEST_P(ConformanceTest, LinearIsAProductAndABias) {
  for (const auto& [rows, inputs, units] : LinearCases()) {
    SCOPED_TRACE(::testing::Message() << rows << " rows, " << inputs << " inputs, " << units << " units");
    const Values x = RandomValues(rows * inputs), weight = RandomValues(units * inputs), bias = RandomValues(units);
    DeviceTensor device_x = UploadActivation({rows, inputs}, x);
    DeviceTensor device_weight = UploadActivation({units, inputs}, weight);
    Values expected = reference::Gemm(false, true, rows, units, inputs, 1, x, weight, 0, Values(rows * units));
    DeviceTensor y = UnwrittenActivation({rows, units});
    EXPECT_OK(backend_->Linear(device_x, device_weight, DeviceTensor(), y));
    ExpectClose(y, expected, "y without bias");
    for (int64_t i = 0; i < rows * units; ++i) expected[i] += bias[i % units];
    EXPECT_OK(backend_->Linear(device_x, device_weight, Upload({units}, bias), y));
    ExpectClose(y, expected, "y");
  }
}

TEST_P(ConformanceTest, LinearBackwardMatchesReference) {
  for (const auto& [rows, inputs, units] : LinearCases()) {
    for (bool accumulate : {false, true}) {
      SCOPED_TRACE(::testing::Message() << rows << " rows, " << inputs << " inputs, " << units << " units, "
                                        << (accumulate ? "added" : "written"));
      const Values x = RandomValues(rows * inputs), weight = RandomValues(units * inputs);
      const Values dy = RandomValues(rows * units), before = RandomValues(units * inputs);
      DeviceTensor device_x = UploadActivation({rows, inputs}, x);
      DeviceTensor device_weight = UploadActivation({units, inputs}, weight);
      DeviceTensor device_dy = UploadActivation({rows, units}, dy), dx = UnwrittenActivation({rows, inputs});
      DeviceTensor dweight = accumulate ? Upload({units, inputs}, before) : Unwritten({units, inputs});
      Values expected_bias(before.begin(), before.begin() + units);
      DeviceTensor dbias = accumulate ? Upload({units}, expected_bias) : Unwritten({units});
      if (!accumulate) expected_bias.assign(units, 0);
      for (int64_t i = 0; i < rows * units; ++i) expected_bias[i % units] += dy[i];
      EXPECT_OK(backend_->LinearBackward(device_x, device_weight, device_dy, accumulate, dx, dweight, dbias));
      ExpectClose(dx, reference::Gemm(false, false, rows, inputs, units, 1, dy, weight, 0, x), "dx");
      const Values expected = reference::Gemm(true, false, units, inputs, rows, 1, dy, x, accumulate ? 1 : 0, before);
      ExpectClose(dweight, expected, "dweight");
      ExpectClose(dbias, expected_bias, "dbias");
      // Alone; perhaps by another library, which adds in another order.
      DeviceTensor again = accumulate ? Upload({units, inputs}, before) : Unwritten({units, inputs});
      EXPECT_OK(backend_->LinearBackward(device_x, device_weight, device_dy, accumulate, DeviceTensor(), again,
                                         DeviceTensor()));
      ExpectClose(again, expected, "dweight without dbias");
    }
  }
}

TEST_P(ConformanceTest, UnitsOfALinearLayerAreComputedAloneAndOthersLeftAlone) {
  for (const auto& [rows, inputs, units] : LinearCases()) {
    for (const UnitRange& range :
         {UnitRange{0, units}, {0, (units + 1) / 2}, {units / 2, units}, {units / 3, units / 2}}) {
      SCOPED_TRACE(::testing::Message() << rows << " rows, " << inputs << " inputs, units " << range.begin << " to "
                                        << range.end << " of " << units);
      const Values x = RandomValues(rows * inputs), weight = RandomValues(units * inputs);
      const Values dy = RandomValues(rows * units), before = RandomValues(units * inputs);
      const DeviceTensor device_x = UploadActivation({rows, inputs}, x);
      const auto is_in_range = [&](int64_t unit) { return unit >= range.begin && unit < range.end; };

      const DeviceTensor y = UploadActivation({rows, units}, dy);
      Values expected = reference::Gemm(false, true, rows, units, inputs, 1, x, weight, 0, Values(rows * units));
      for (int64_t i = 0; i < rows * units; ++i) expected[i] = is_in_range(i % units) ? expected[i] : dy[i];
      EXPECT_OK(backend_->LinearUnits(range, device_x, UploadActivation({units, inputs}, weight), y));
      ExpectClose(y, expected, "y");

      const DeviceTensor device_dy = UploadActivation({rows, units}, dy);
      for (bool accumulate : {false, true}) {
        const DeviceTensor dweight = Upload({units, inputs}, before);
        expected = reference::Gemm(true, false, units, inputs, rows, 1, dy, x, accumulate ? 1 : 0, before);
        for (int64_t i = 0; i < units * inputs; ++i) expected[i] = is_in_range(i / inputs) ? expected[i] : before[i];
        EXPECT_OK(backend_->LinearUnitsGradient(range, device_x, device_dy, accumulate, dweight));
        ExpectClose(dweight, expected, accumulate ? "dweight, added" : "dweight");
      }
    }
  }
}

TEST_P(ConformanceTest, RefusesUnitsThatALayerDoesNotHave) {
  const DeviceTensor x = EmptyActivation({4, 3}), weight = EmptyActivation({2, 3}), y = EmptyActivation({4, 2});
  for (const UnitRange& range : {UnitRange{-1, 1}, {0, 3}, {2, 1}}) {
    EXPECT_EQ(backend_->LinearUnits(range, x, weight, y).code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(backend_->LinearUnitsGradient(range, x, y, false, Empty({2, 3})).code(), absl::StatusCode::kOutOfRange);
  }
  EXPECT_EQ(backend_->LinearUnits({1, 3}, x, weight, y).message(),
            "LinearUnits: units [1, 3) are not all of " + weight.Description() + "'s");
  EXPECT_EQ(backend_->LinearUnits({0, 1}, EmptyActivation({0, 3}), weight, EmptyActivation({0, 2})).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(backend_->LinearUnitsGradient({0, 1}, x, y, false, Empty({2, 4})).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(ConformanceTest, LinearOfNoRowsHasNoGradient) {
  DeviceTensor x = EmptyActivation({0, 3}), weight = UnwrittenActivation({2, 3}), dy = EmptyActivation({0, 2});
  DeviceTensor dweight = Unwritten({2, 3}), dbias = Unwritten({2});
  EXPECT_OK(backend_->Linear(x, weight, Unwritten({2}), EmptyActivation({0, 2})));
  EXPECT_OK(backend_->LinearBackward(x, weight, dy, false, EmptyActivation({0, 3}), dweight, dbias));
  EXPECT_EQ(Download(dweight), Values(6));
  EXPECT_EQ(Download(dbias), Values(2));
}

TEST_P(ConformanceTest, LinearRefusesShapesThatDoNotFit) {
  DeviceTensor x = EmptyActivation({4, 3}), weight = EmptyActivation({2, 3}), y = EmptyActivation({4, 2});
  const std::string type = TypeName(backend_->ActivationType());
  EXPECT_EQ(backend_->Linear(EmptyActivation({4, 5}), weight, DeviceTensor(), y).message(),
            "Linear: x is " + type + " [4x5], expected " + type + " [4x3]");
  EXPECT_EQ(backend_->Linear(x, weight, Empty({3}), y).message(), "Linear: bias is float32 [3], expected float32 [2]");
  EXPECT_EQ(
      backend_->LinearBackward(x, weight, y, false, EmptyActivation({4, 4}), Empty({2, 3}), DeviceTensor()).message(),
      "LinearBackward: dx is " + type + " [4x4], expected " + type + " [4x3]");
}

TEST_P(ConformanceTest, CopiesReachPartsOfATensor) {
  DeviceTensor tensor = Upload({6}, {0, 1, 2, 3, 4, 5});
  const float values[] = {10, 20};
  EXPECT_OK(backend_->CopyToDevice(tensor, 3, 2, values));
  float read[3] = {};
  EXPECT_OK(backend_->CopyToHost(tensor, 2, 3, read));
  absl::StatusOr<std::unique_ptr<Event>> event = backend_->Record();
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_OK((*event)->Wait());
  EXPECT_TRUE((*event)->Done());
  EXPECT_EQ(read[0], 2);
  EXPECT_EQ(read[1], 10);
  EXPECT_EQ(read[2], 20);
  EXPECT_EQ(backend_->CopyToHost(tensor, 4, 3, read).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(backend_->CopyToDevice(tensor, -1, 1, read).code(), absl::StatusCode::kOutOfRange);
}

TEST_P(ConformanceTest, AllocatesZeros) { ExpectClose(Empty({33, 7}), Values(231), "new tensor"); }

INSTANTIATE_TEST_SUITE_P(LinearAlgebra, ConformanceTest, ::testing::ValuesIn(AllBackends()), CaseName);

}  // namespace
}  // namespace rubato::conformance
