#include "kernels/optimizer/initializer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace rubato {
namespace {

TensorSpec Tensor(v1::Initializer initializer, int64_t fan_in, int64_t fan_out) {
  TensorSpec tensor;
  tensor.name = "linear0.weight";
  tensor.shape = {fan_out, fan_in};
  tensor.initializer = initializer;
  tensor.fan_in = fan_in;
  tensor.fan_out = fan_out;
  return tensor;
}

std::vector<float> Slice(const TensorSpec& tensor, int index, uint64_t seed, int64_t offset, int64_t n) {
  std::vector<float> values(n, -7.0f);
  InitializeSlice(tensor, index, seed, offset, n, values.data());
  return values;
}

double Mean(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Variance(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += double{value} * value;
  return sum / static_cast<double>(values.size());
}

constexpr int64_t kMany = 200000;

TEST(InitializerTest, HeNormalHasItsVariance) {
  const std::vector<float> values = Slice(Tensor(v1::HE_NORMAL, 50, 10), 0, 1, 0, kMany);
  EXPECT_NEAR(Mean(values), 0, 0.002);
  EXPECT_NEAR(Variance(values), 2.0 / 50, 0.0008);
  // Normal: about 4.55 % lie beyond two standard deviations.
  const double limit = 2 * std::sqrt(2.0 / 50);
  const auto beyond = std::count_if(values.begin(), values.end(), [&](float v) { return std::abs(v) > limit; });
  EXPECT_NEAR(static_cast<double>(beyond) / kMany, 0.0455, 0.002);
}

TEST(InitializerTest, LecunNormalHasItsVariance) {
  const std::vector<float> values = Slice(Tensor(v1::LECUN_NORMAL, 50, 10), 0, 1, 0, kMany);
  EXPECT_NEAR(Variance(values), 1.0 / 50, 0.0004);
}

TEST(InitializerTest, GlorotUniformFillsItsInterval) {
  const std::vector<float> values = Slice(Tensor(v1::GLOROT_UNIFORM, 50, 10), 0, 1, 0, kMany);
  const double limit = std::sqrt(6.0 / 60);
  EXPECT_NEAR(Mean(values), 0, 0.002);
  EXPECT_NEAR(Variance(values), limit * limit / 3, 0.0005);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), limit);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), limit * 0.999);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -limit);
}

TEST(InitializerTest, NeighboursAreUncorrelated) {
  const std::vector<float> values = Slice(Tensor(v1::HE_NORMAL, 2, 1), 0, 1, 0, kMany);
  for (int lag = 1; lag <= 4; ++lag) {
    double sum = 0;
    for (int64_t i = lag; i < kMany; ++i) sum += double{values[i]} * values[i - lag];
    EXPECT_NEAR(sum / kMany, 0, 0.01) << lag;
  }
}

TEST(InitializerTest, ZerosAndOnes) {
  TensorSpec tensor = Tensor(v1::ZEROS, 5, 5);
  EXPECT_EQ(Slice(tensor, 0, 1, 3, 4), std::vector<float>(4, 0.0f));
  tensor.ones = true;
  EXPECT_EQ(Slice(tensor, 0, 1, 3, 4), std::vector<float>(4, 1.0f));
}

TEST(InitializerTest, ElementsDoNotDependOnTheSlice) {
  for (v1::Initializer initializer : {v1::HE_NORMAL, v1::GLOROT_UNIFORM, v1::LECUN_NORMAL}) {
    const TensorSpec tensor = Tensor(initializer, 10, 10);
    const std::vector<float> whole = Slice(tensor, 2, 9, 0, 101);
    for (int64_t piece : {1, 2, 3, 5, 16, 64}) {
      for (int64_t offset = 0; offset < 101; offset += piece) {
        const int64_t n = std::min<int64_t>(piece, 101 - offset);
        const std::vector<float> part = Slice(tensor, 2, 9, offset, n);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + offset)) << piece << " at " << offset;
      }
    }
  }
}

TEST(InitializerTest, SeedAndTensorMatter) {
  const TensorSpec tensor = Tensor(v1::HE_NORMAL, 10, 10);
  EXPECT_EQ(Slice(tensor, 0, 1, 0, 8), Slice(tensor, 0, 1, 0, 8));
  EXPECT_NE(Slice(tensor, 0, 1, 0, 8), Slice(tensor, 0, 2, 0, 8));
  EXPECT_NE(Slice(tensor, 0, 1, 0, 8), Slice(tensor, 1, 1, 0, 8));
}

TEST(InitializerTest, WritesNothingForNoElements) {
  EXPECT_TRUE(Slice(Tensor(v1::HE_NORMAL, 1, 1), 0, 1, 5, 0).empty());
}

}  // namespace
}  // namespace rubato
