#include "coordinator/rules/policies/parts/drift.h"

#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

class DriftTest : public testing::Test {
 protected:
  void Measure(double spread, double lasting, int64_t batches) {
    gradients_.spread += spread;
    gradients_.lasting_spread += lasting;
    drift_.Note(generation_, gradients_, batches);
  }

  uint64_t generation_ = 1;
  GradientNoise::Sums gradients_;
  Drift drift_;
};

TEST_F(DriftTest, IsNotKnownBeforeSomethingIsMeasured) {
  EXPECT_FALSE(drift_.Ratio(1).has_value());
  Measure(0, 0, 1);
  EXPECT_FALSE(drift_.Ratio(1).has_value());
}

TEST_F(DriftTest, GrowsWithTheBatchesBetweenTwoExchanges) {
  Measure(0, 0, 1);
  Measure(10, 2, 1);
  EXPECT_DOUBLE_EQ(*drift_.Ratio(1), 0.25);
  EXPECT_DOUBLE_EQ(*drift_.Ratio(16), 4);
  generation_ = 2;
  Measure(0, 0, 16);
  EXPECT_DOUBLE_EQ(*drift_.Ratio(16), 4) << "as the plan before has shown";
  Measure(100, 50, 16);
  EXPECT_DOUBLE_EQ(*drift_.Ratio(16), 1);
  EXPECT_DOUBLE_EQ(*drift_.Ratio(1), 1.0 / 16);
}

TEST_F(DriftTest, StaysFiniteWhateverChanceShows) {
  Measure(0, 0, 1);
  Measure(10, -3, 1);
  EXPECT_EQ(*drift_.Ratio(16), 0);
  Measure(10, 40, 1);
  EXPECT_NEAR(*drift_.Ratio(1), 999, 1);
}

}  // namespace
}  // namespace rubato::coordinator
