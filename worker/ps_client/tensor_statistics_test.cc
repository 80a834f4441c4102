#include "worker/ps_client/tensor_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "common/random.h"
#include "kernels/optimizer/isa.h"

namespace rubato::worker {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

TEST(TensorStatisticsTest, CountsElementsInEqualParts) {
  std::vector<float> elements;
  for (int i = 0; i <= kStatisticsParts; ++i) elements.push_back(static_cast<float>(i));
  const v1::TensorStatistics statistics = DescribeTensor(elements);
  EXPECT_EQ(statistics.elements(), kStatisticsParts + 1);
  EXPECT_EQ(statistics.min(), 0);
  EXPECT_EQ(statistics.max(), kStatisticsParts);
  EXPECT_EQ(statistics.sum(), 465);
  EXPECT_EQ(statistics.sum_squares(), 9455);
  ASSERT_EQ(statistics.counts_size(), kStatisticsParts);
  for (int i = 0; i + 1 < kStatisticsParts; ++i) EXPECT_EQ(statistics.counts(i), 1) << i;
  EXPECT_EQ(statistics.counts(kStatisticsParts - 1), 2);
}

TEST(TensorStatisticsTest, LeavesOutWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const v1::TensorStatistics statistics =
      DescribeTensor({-infinity, 1, std::numeric_limits<float>::quiet_NaN(), 3, infinity});
  EXPECT_EQ(statistics.elements(), 5);
  EXPECT_EQ(statistics.non_finite(), 3);
  EXPECT_EQ(statistics.min(), 1);
  EXPECT_EQ(statistics.max(), 3);
  EXPECT_EQ(std::accumulate(statistics.counts().begin(), statistics.counts().end(), int64_t{0}), 2);
  EXPECT_EQ(DescribeTensor({infinity}).counts_size(), 0);
  EXPECT_EQ(DescribeTensor({infinity}).max(), 0);
  EXPECT_EQ(DescribeTensor({}).elements(), 0);
}

TEST(TensorStatisticsTest, HasOnePartForEqualElements) {
  EXPECT_THAT(DescribeTensor({2, 2, 2}).counts(), ElementsAre(3));
}

TEST(TensorStatisticsTest, DescribesManyElements) {
  // Longer than what is worked on together, and no multiple of it; parts are powers of two wide, so nothing is rounded.
  constexpr int kElements = 100'003;
  std::vector<float> elements;
  std::vector<int64_t> counts(kStatisticsParts);
  double sum = 0;
  double sum_squares = 0;
  int64_t non_finite = 0;
  for (int i = 0; i < kElements; ++i) {
    if (i % 9973 == 5) {
      elements.push_back(std::numeric_limits<float>::quiet_NaN());
      ++non_finite;
      continue;
    }
    const int value = i % (2 * kStatisticsParts + 1);
    elements.push_back(static_cast<float>(value));
    ++counts[std::min(value / 2, kStatisticsParts - 1)];
    sum += value;
    sum_squares += value * value;
  }
  const v1::TensorStatistics statistics = DescribeTensor(elements);
  EXPECT_EQ(statistics.elements(), kElements);
  EXPECT_EQ(statistics.non_finite(), non_finite);
  EXPECT_EQ(statistics.min(), 0);
  EXPECT_EQ(statistics.max(), 2 * kStatisticsParts);
  EXPECT_EQ(statistics.sum(), sum);
  EXPECT_EQ(statistics.sum_squares(), sum_squares);
  EXPECT_THAT(statistics.counts(), ElementsAreArray(counts));
}

TEST(TensorStatisticsTest, EveryInstructionSetSaysTheSame) {
  Random random(1);
  std::vector<float> elements(20'011);
  for (float& element : elements) element = static_cast<float>(random.Normal());
  elements[7] = std::numeric_limits<float>::infinity();
  const v1::TensorStatistics expected = DescribeTensorOn(Isa::kBaseline, elements);
  for (Isa isa : kAllIsas) {
    if (!Supports(isa)) continue;
    EXPECT_EQ(DescribeTensorOn(isa, elements).SerializeAsString(), expected.SerializeAsString()) << IsaName(isa);
  }
}

TEST(TensorStatisticsTest, TakesTheWholeRangeOfFloats) {
  const float max = std::numeric_limits<float>::max();
  const v1::TensorStatistics statistics = DescribeTensor({-max, max});
  EXPECT_EQ(statistics.counts(0), 1);
  EXPECT_EQ(statistics.counts(kStatisticsParts - 1), 1);
}

}  // namespace
}  // namespace rubato::worker
