#include <cmath>

#include "kernels/conformance/harness.h"

namespace rubato::conformance {
namespace {

TEST_P(ConformanceTest, EmbeddingGathersRowsAndItsGradientAddsThem) {
  const int64_t entries = 11, width = 7;
  const Shape positions = {3, 20}, outputs = {3, 20, 7};
  const Values table = RandomValues(entries * width), dy = RandomValues(60 * width);
  const Values before = RandomValues(entries * width);
  std::vector<int32_t> indices(60);
  // Not the last row, whose gradient is zero.
  for (int32_t& index : indices) index = static_cast<int32_t>(random_.Below(entries - 1));
  Values expected(60 * width), gradient(entries * width);
  for (int64_t i = 0; i < 60 * width; ++i) {
    const int64_t at = indices[i / width] * width + i % width;
    expected[i] = table[at];
    gradient[at] += dy[i];
  }
  DeviceTensor device_indices = UploadInts(positions, indices), device_dy = UploadActivation(outputs, dy);
  DeviceTensor y = UnwrittenActivation(outputs), dtable = Unwritten({entries, width});
  EXPECT_OK(backend_->Embed(Upload({entries, width}, table), device_indices, y));
  EXPECT_EQ(Download(y), expected);
  EXPECT_OK(backend_->EmbedBackward(device_indices, device_dy, false, dtable));
  ExpectClose(dtable, gradient, "gradient");
  dtable = Upload({entries, width}, before);
  EXPECT_OK(backend_->EmbedBackward(device_indices, device_dy, true, dtable));
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += before[i];
  ExpectClose(dtable, gradient, "accumulated gradient");
}

TEST_P(ConformanceTest, EmbeddingGradientAddsEqualIndicesInTheirOrder) {
  // In another order the small numbers would be lost, or all of them counted.
  const double large = 0x1p24;
  DeviceTensor dtable = Unwritten({2, 1});
  EXPECT_OK(backend_->EmbedBackward(UploadInts({5}, {1, 1, 1, 0, 1}), Upload({5, 1}, {1, large, 1, 5, -large}), false,
                                    dtable));
  EXPECT_EQ(Download(dtable), (Values{5, 0}));
  EXPECT_OK(
      backend_->EmbedBackward(UploadInts({4}, {0, 0, 0, 0}), Upload({4, 1}, {large, -large, 1, 1}), false, dtable));
  EXPECT_EQ(Download(dtable), (Values{2, 0}));
}

TEST_P(ConformanceTest, EmbeddingRefusesShapesThatDoNotFit) {
  DeviceTensor table = Empty({4, 3}), indices = UploadInts({2}, {0, 1});
  EXPECT_EQ(backend_->Embed(table, indices, Empty({2, 4})).message(),
            "Embed: y is float32 [2x4], expected float32 [2x3]");
  EXPECT_EQ(backend_->Embed(table, Empty({2}), Empty({2, 3})).message(),
            "Embed: indices is float32 [2], expected int32 [2]");
}

std::vector<AttentionGeometry> AttentionCases() {
  //        sequence, heads, head width
  return {{1, 1, 1},   {5, 2, 3},    {64, 1, 16},  {65, 3, 8}, {130, 2, 32},
          {200, 1, 5}, {140, 1, 64}, {77, 1, 128}, {1, 2, 16}};
}

TEST_P(ConformanceTest, CausalAttentionMatchesReference) {
  for (const AttentionGeometry& g : AttentionCases()) {
    for (int64_t batch : {1, 3}) {
      SCOPED_TRACE(::testing::Message() << "sequence " << g.sequence << ", " << g.heads << " heads of " << g.head_width
                                        << ", batch " << batch);
      const Shape in = g.InputShape(batch), out = g.OutputShape(batch);
      const Values qkv = RandomValues(NumElements(in)), dy = RandomValues(NumElements(out));
      DeviceTensor device_qkv = UploadActivation(in, qkv), device_dy = UploadActivation(out, dy);
      DeviceTensor y = UnwrittenActivation(out), log_sum_exp = Unwritten(g.LogSumExpShape(batch)),
                   dqkv = UnwrittenActivation(in);
      EXPECT_OK(backend_->CausalAttention(g, device_qkv, y, log_sum_exp));
      const auto forward = reference::CausalAttention(g, batch, qkv);
      ExpectClose(y, forward.y, "y");
      ExpectClose(log_sum_exp, forward.log_sum_exp, "log-sum-exp");
      EXPECT_OK(backend_->CausalAttentionBackward(g, device_qkv, y, log_sum_exp, device_dy, dqkv));
      ExpectClose(dqkv, reference::CausalAttentionBackward(g, batch, qkv, dy), "dqkv");
    }
  }
}

TEST_P(ConformanceTest, CausalAttentionDoesNotOverflowWithLargeScores) {
  const AttentionGeometry g = {70, 1, 16};
  Values qkv = RandomValues(NumElements(g.InputShape(1)));
  // Scores of some thousands: the softmax takes the largest alone.
  for (int64_t row = 0; row < g.sequence; ++row) {
    for (int64_t i = 0; i < 2 * g.width(); ++i) qkv[row * 3 * g.width() + i] *= 32;
  }
  DeviceTensor device_qkv = UploadActivation(g.InputShape(1), qkv);
  DeviceTensor y = UnwrittenActivation(g.OutputShape(1)), log_sum_exp = Unwritten(g.LogSumExpShape(1));
  EXPECT_OK(backend_->CausalAttention(g, device_qkv, y, log_sum_exp));
  for (double value : Download(y)) ASSERT_TRUE(std::isfinite(value));
  const Values expected = reference::CausalAttention(g, 1, qkv).log_sum_exp;
  ExpectClose(log_sum_exp, expected, "log-sum-exp");
}

TEST_P(ConformanceTest, CausalAttentionDoesNotSeeLaterPositions) {
  const AttentionGeometry g = {100, 2, 16};
  Values qkv = RandomValues(NumElements(g.InputShape(1)));
  DeviceTensor y = UnwrittenActivation(g.OutputShape(1)), log_sum_exp = Unwritten(g.LogSumExpShape(1));
  EXPECT_OK(backend_->CausalAttention(g, UploadActivation(g.InputShape(1), qkv), y, log_sum_exp));
  const Values before = Download(y);
  // Something else from position 80 on.
  for (size_t i = 80 * 3 * g.width(); i < qkv.size(); ++i) qkv[i] += 7;
  EXPECT_OK(backend_->CausalAttention(g, UploadActivation(g.InputShape(1), qkv), y, log_sum_exp));
  const Values after = Download(y);
  for (int64_t i = 0; i < 80 * g.width(); ++i) ASSERT_EQ(after[i], before[i]) << i;
  EXPECT_NE(after[80 * g.width()], before[80 * g.width()]);
}

TEST_P(ConformanceTest, CausalAttentionHasTheSameBitsEveryTime) {
  const AttentionGeometry g = {130, 2, 32};
  DeviceTensor qkv = UploadActivation(g.InputShape(2), RandomValues(NumElements(g.InputShape(2))));
  DeviceTensor dy = UploadActivation(g.OutputShape(2), RandomValues(NumElements(g.OutputShape(2))));
  DeviceTensor y = UnwrittenActivation(g.OutputShape(2)), log_sum_exp = Unwritten(g.LogSumExpShape(2));
  DeviceTensor first = UnwrittenActivation(g.InputShape(2)), second = UnwrittenActivation(g.InputShape(2));
  for (const DeviceTensor& dqkv : {first, second}) {
    EXPECT_OK(backend_->CausalAttention(g, qkv, y, log_sum_exp));
    EXPECT_OK(backend_->CausalAttentionBackward(g, qkv, y, log_sum_exp, dy, dqkv));
  }
  EXPECT_EQ(Download(first), Download(second));
}

TEST_P(ConformanceTest, CausalAttentionRefusesShapesThatDoNotFit) {
  const AttentionGeometry g = {4, 2, 3};
  EXPECT_EQ(
      backend_->CausalAttention(g, EmptyActivation({1, 4, 18}), EmptyActivation({1, 4, 6}), Empty({1, 4, 2})).message(),
      "CausalAttention: log_sum_exp is float32 [1x4x2], expected float32 [1x2x4]");
  EXPECT_EQ(
      backend_->CausalAttention({4, 0, 3}, EmptyActivation({1, 4, 18}), EmptyActivation({1, 4, 6}), Empty({1, 2, 4}))
          .code(),
      absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Sequences, ConformanceTest, ::testing::ValuesIn(AllBackends()), CaseName);

}  // namespace
}  // namespace rubato::conformance
