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
      DeviceTensor da = Upload(ta ? Shape{s.k, s.m} : Shape{s.m, s.k}, a);
      DeviceTensor db = Upload(tb ? Shape{s.n, s.k} : Shape{s.k, s.n}, b);
      DeviceTensor dc = Upload({s.m, s.n}, c);
      EXPECT_OK(backend_->Gemm(ta, tb, 0.5f, da, db, 2, dc));
      ExpectClose(dc, reference::Gemm(ta, tb, s.m, s.n, s.k, 0.5, a, b, 2, c), "c with beta 2");

      DeviceTensor fresh = Unwritten({s.m, s.n});
      EXPECT_OK(backend_->Gemm(ta, tb, 1, da, db, 0, fresh));
      ExpectClose(fresh, reference::Gemm(ta, tb, s.m, s.n, s.k, 1, a, b, 0, c), "c with beta 0");
    }
  }
}

TEST_P(ConformanceTest, GemmTakesAllDimensionsAfterTheFirstAsColumns) {
  const Values a = RandomValues(4 * 12), b = RandomValues(5 * 12);
  DeviceTensor c = Unwritten({4, 5});
  EXPECT_OK(backend_->Gemm(false, true, 1, Upload({4, 3, 2, 2}, a), Upload({5, 12}, b), 0, c));
  ExpectClose(c, reference::Gemm(false, true, 4, 5, 12, 1, a, b, 0, Values(20)), "c");
}

TEST_P(ConformanceTest, FillAndAxpyAddUp) {
  const Values x = RandomValues(1003);
  DeviceTensor y = Unwritten({1003});
  EXPECT_OK(backend_->Fill(3, y));
  EXPECT_OK(backend_->Axpy(-2, Upload({1003}, x), y));
  Values expected(x.size());
  for (size_t i = 0; i < x.size(); ++i) expected[i] = 3 - 2 * x[i];
  ExpectClose(y, expected, "y");
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
    DeviceTensor y = Upload(shape, values), gradient = Upload({channels}, bias);
    EXPECT_OK(backend_->BiasGradient(y, true, gradient));
    ExpectClose(gradient, sums, "accumulated gradient");
    for (int64_t i = 0; i < channels; ++i) sums[i] -= bias[i];
    EXPECT_OK(backend_->BiasGradient(y, false, gradient));
    ExpectClose(gradient, sums, "gradient");
    EXPECT_OK(backend_->AddBias(Upload({channels}, bias), y));
    ExpectClose(y, added, "y");
  }
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
