// TOP_K against a sort.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "common/random.h"
#include "kernels/codec/codec.h"

namespace rubato {
namespace {

// Indices of the `count` largest magnitudes, ascending; of equal ones the lowest indices.
std::vector<uint32_t> Largest(const std::vector<float>& values, int64_t count) {
  std::vector<uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return std::abs(values[a]) > std::abs(values[b]); });
  order.resize(count);
  std::sort(order.begin(), order.end());
  return order;
}

void ExpectLargest(const std::vector<float>& values, double fraction) {
  const int64_t n = static_cast<int64_t>(values.size());
  const int64_t count = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(fraction * static_cast<double>(n))));
  std::vector<float> residual(n, 0.0f);
  std::vector<uint8_t> encoded(MaxEncodedBytes({v1::TOP_K, fraction}, n));
  ASSERT_EQ(Encode({v1::TOP_K, fraction}, values.data(), n, residual.data(), 0, 0, encoded.data()), 4 + 8 * count);
  uint32_t sent = 0;
  std::memcpy(&sent, encoded.data(), 4);
  ASSERT_EQ(sent, count);
  std::vector<uint32_t> indices(count);
  std::memcpy(indices.data(), encoded.data() + 4, 4 * count);
  EXPECT_EQ(indices, Largest(values, count));
  std::vector<float> left = values;
  for (int64_t i = 0; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, encoded.data() + 4 + 4 * count + 4 * i, 4);
    EXPECT_EQ(value, values[indices[i]]);
    left[indices[i]] = 0;
  }
  EXPECT_EQ(residual, left);
}

std::vector<float> Made(int64_t n, const std::function<float(int64_t)>& value) {
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = value(i);
  return values;
}

TEST(TopKTest, SendsTheLargestOfAnyDistribution) {
  Random random(17);
  for (int64_t n : {1, 2, 31, 100, 3000, 8192, 50000}) {
    const std::vector<float> inputs[] = {
        Made(n, [&](int64_t) { return static_cast<float>(random.Normal()); }),
        Made(n, [&](int64_t) { return static_cast<float>(std::exp(10 * random.Normal())); }),
        Made(n, [&](int64_t) { return static_cast<float>(random.Below(5)) - 2; }),
        Made(n, [&](int64_t) { return random.Below(100) == 0 ? static_cast<float>(random.Normal()) : 0.0f; }),
        Made(n, [&](int64_t i) { return static_cast<float>(i); }),
        Made(n, [&](int64_t i) { return static_cast<float>(n - i); }),
        Made(n, [&](int64_t) { return 0.5f; }),
        Made(n, [&](int64_t) { return 0.0f; }),
    };
    for (const std::vector<float>& input : inputs) {
      for (double fraction : {1e-9, 0.001, 0.01, 0.3, 1.0}) ExpectLargest(input, fraction);
    }
  }
}

TEST(TopKTest, FindsTheLargestWhereTheSampleMisleads) {
  // All but a few of what the sample sees is large, and hardly anything else.
  constexpr int64_t kSize = 1 << 16;
  std::vector<float> values(kSize, 0.001f);
  for (int64_t i = 0; i < 2000; ++i) {
    const uint64_t share = static_cast<uint32_t>(i * 2654435769u);
    values[share * kSize >> 32] = 1.0f + static_cast<float>(i);
  }
  for (double fraction : {0.01, 0.05, 0.1}) ExpectLargest(values, fraction);
}

TEST(TopKTest, CountsAreRoundedUp) {
  EXPECT_EQ(MaxEncodedBytes({v1::TOP_K, 0.01}, 0), 4);
  EXPECT_EQ(MaxEncodedBytes({v1::TOP_K, 0.01}, 1), 12);
  EXPECT_EQ(MaxEncodedBytes({v1::TOP_K, 0.01}, 100), 12);
  EXPECT_EQ(MaxEncodedBytes({v1::TOP_K, 0.01}, 101), 20);
  EXPECT_EQ(MaxEncodedBytes({v1::TOP_K, 1}, 5), 44);
}

TEST(TopKTest, BytesAreAsDocumented) {
  const std::vector<float> values = {0.5f, -3.0f, 1.0f, -3.0f, 2.0f};
  std::vector<float> residual = {0.0f, 0.0f, 0.0f, 0.0f, 2.0f};
  std::vector<uint8_t> encoded(20);
  ASSERT_EQ(Encode({v1::TOP_K, 0.4}, values.data(), 5, residual.data(), 0, 0, encoded.data()), 20);
  EXPECT_EQ(encoded, (std::vector<uint8_t>{2, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0x40, 0xc0, 0, 0, 0x80, 0x40}));
  EXPECT_EQ(residual, (std::vector<float>{0.5f, 0.0f, 1.0f, -3.0f, 0.0f}));
}

TEST(TopKTest, SendsWhatIsNotFiniteFirst) {
  std::vector<float> values(20000, 1.0f), residual(20000, 0.5f);
  values[70] = std::numeric_limits<float>::infinity();
  values[19999] = std::numeric_limits<float>::quiet_NaN();
  std::vector<uint8_t> encoded(20);
  Encode({v1::TOP_K, 0.0001}, values.data(), 20000, residual.data(), 0, 0, encoded.data());
  uint32_t indices[2];
  std::memcpy(indices, encoded.data() + 4, 8);
  EXPECT_EQ(indices[0], 70u);
  EXPECT_EQ(indices[1], 19999u);
  EXPECT_EQ(residual, std::vector<float>(20000, 0.5f));
}

}  // namespace
}  // namespace rubato
