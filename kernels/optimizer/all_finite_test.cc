#include "kernels/optimizer/all_finite.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace rubato {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(AllFiniteTest, AcceptsEveryFiniteNumber) {
  const std::vector<float> values = {0.0f, -0.0f, kLargest, -kLargest, std::numeric_limits<float>::denorm_min(), 1.0f};
  EXPECT_TRUE(AllFinite(values.data(), static_cast<int64_t>(values.size())));
  EXPECT_TRUE(AllFinite(nullptr, 0));
}

TEST(AllFiniteTest, FindsOneBadElementAnywhere) {
  std::vector<float> values(9001, 1.5f);
  for (size_t at : {size_t{0}, size_t{15}, size_t{4095}, size_t{4096}, size_t{8999}, size_t{9000}}) {
    for (float bad : {kInfinity, -kInfinity, kNaN, -kNaN}) {
      values[at] = bad;
      EXPECT_FALSE(AllFinite(values.data(), static_cast<int64_t>(values.size()))) << at;
      values[at] = 1.5f;
    }
  }
  EXPECT_TRUE(AllFinite(values.data(), static_cast<int64_t>(values.size())));
}

TEST(AllFiniteTest, LooksAtNothingBeyondTheEnd) {
  const std::vector<float> values = {1.0f, 2.0f, kNaN};
  EXPECT_TRUE(AllFinite(values.data(), 2));
}

TEST(AllFiniteTest, TakesAnyAddress) {
  std::vector<char> bytes(4 * 100 + 3);
  const std::vector<float> values(100, kLargest);
  std::memcpy(bytes.data() + 3, values.data(), 400);
  EXPECT_TRUE(AllFinite(bytes.data() + 3, 100));
  std::memcpy(bytes.data() + 3 + 4 * 57, &kNaN, 4);
  EXPECT_FALSE(AllFinite(bytes.data() + 3, 100));
}

}  // namespace
}  // namespace rubato
