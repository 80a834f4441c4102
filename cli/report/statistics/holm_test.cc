#include "cli/report/statistics/holm.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HolmTest, TheSmallestIsMultipliedMost) {
  EXPECT_THAT(HolmAdjusted({0.02, 0.001, 0.3}), ElementsAre(DoubleEq(0.04), DoubleEq(0.003), DoubleEq(0.3)));
}

TEST(HolmTest, NoneIsUnderOneThatWasSmaller) {
  EXPECT_THAT(HolmAdjusted({0.02, 0.021, 0.022}), ElementsAre(DoubleEq(0.06), DoubleEq(0.06), DoubleEq(0.06)));
}

TEST(HolmTest, NoneIsOverOne) { EXPECT_THAT(HolmAdjusted({0.7, 0.9}), ElementsAre(1, 1)); }

TEST(HolmTest, OneTestStaysAsItIs) {
  EXPECT_THAT(HolmAdjusted({0.04}), ElementsAre(0.04));
  EXPECT_THAT(HolmAdjusted({}), IsEmpty());
}

}  // namespace
}  // namespace rubato
