#include "kernels/optimizer/all_finite.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(AllFiniteTest, EveryInstructionSetFindsTheSame) {
  for (Isa isa : kAllIsas) {
    if (!Supports(isa)) continue;
    std::vector<float> values(5000, 1.5f);
    EXPECT_TRUE(AllFiniteOn(isa, values.data(), 5000)) << IsaName(isa);
    values[4999] = kNaN;
    EXPECT_FALSE(AllFiniteOn(isa, values.data(), 5000)) << IsaName(isa);
    EXPECT_TRUE(AllFiniteOn(isa, values.data(), 4999)) << IsaName(isa);
  }
}

TEST(AllFiniteTest, LooksAtElementsThatLieInSeveralPieces) {
  constexpr int64_t kSize = 40;
  for (int64_t at = 0; at <= kSize; ++at) {
    std::vector<float> values(kSize, kLargest);
    if (at < kSize) values[at] = kInfinity;
    const uint8_t* bytes = BytesOf(values.data(), kSize).data();
    for (int64_t length = 1; length <= 4 * kSize; ++length) {
      std::vector<std::vector<uint8_t>> parts;
      std::vector<ByteSpan> pieces = {ByteSpan()};
      for (int64_t begin = 0; begin < 4 * kSize; begin += length) {
        parts.emplace_back(bytes + begin, bytes + std::min(begin + length, 4 * kSize));
      }
      for (const std::vector<uint8_t>& part : parts) {
        pieces.push_back(part);
        pieces.push_back(ByteSpan());
      }
      ASSERT_EQ(AllFinite(pieces), at == kSize) << at << " by " << length;
    }
  }
  EXPECT_TRUE(AllFinite(absl::Span<const ByteSpan>()));
}

}  // namespace
}  // namespace rubato
