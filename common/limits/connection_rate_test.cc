#include "common/limits/connection_rate.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

constexpr absl::Duration kPeriod = absl::Seconds(10);
const absl::Time kStart = absl::UnixEpoch();

TEST(ConnectionRateTest, AHostHasSoManyInEachPeriodAndOthersTheirOwn) {
  ConnectionRate rate(2, kPeriod);
  EXPECT_TRUE(rate.Take("a", kStart));
  EXPECT_TRUE(rate.Take("a", kStart + absl::Seconds(9)));
  EXPECT_FALSE(rate.Take("a", kStart + absl::Seconds(9)));
  EXPECT_TRUE(rate.Take("b", kStart + absl::Seconds(9)));
  EXPECT_TRUE(rate.Take("a", kStart + kPeriod));
}

TEST(ConnectionRateTest, KnowsSoManyHostsAndForgetsThem) {
  ConnectionRate rate(1, kPeriod);
  for (size_t i = 0; i < ConnectionRate::kMostHosts; ++i) EXPECT_TRUE(rate.Take(absl::StrCat(i), kStart));
  EXPECT_FALSE(rate.Take("another", kStart + absl::Seconds(9)));
  EXPECT_TRUE(rate.Take("another", kStart + kPeriod));
}

}  // namespace
}  // namespace rubato
