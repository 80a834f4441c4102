#include "worker/evaluator/r_squared.h"

#include <gtest/gtest.h>

#include <limits>

namespace rubato::worker {
namespace {

TEST(RSquaredTest, IsOneForAPerfectFitAndZeroForTheMean) {
  RSquared r2(1);
  const float labels[] = {1, 2, 3, 6};
  r2.AddLabels(labels, 3);
  r2.AddLabels(labels + 3, 1);
  EXPECT_EQ(r2.Value(0), 1);
  // The mean is 3, at distances 2, 1, 0 and 3.
  EXPECT_DOUBLE_EQ(*r2.Value(14), 0);
  EXPECT_DOUBLE_EQ(*r2.Value(3.5), 0.75);
  EXPECT_DOUBLE_EQ(*r2.Value(28), -1);
}

TEST(RSquaredTest, EachElementOfALabelHasItsOwnMean) {
  RSquared r2(2);
  const float labels[] = {0, 100, 2, 104};
  r2.AddLabels(labels, 2);
  // Squared distances 1 + 1 and 4 + 4. A loss is the mean over the elements.
  EXPECT_DOUBLE_EQ(*r2.Value(5), 0);
  EXPECT_DOUBLE_EQ(*r2.Value(2.5), 0.5);
}

TEST(RSquaredTest, KeepsItsDigitsFarFromZero) {
  RSquared r2(1);
  const float labels[] = {16777213, 16777214, 16777215};
  r2.AddLabels(labels, 3);
  EXPECT_DOUBLE_EQ(*r2.Value(1), 0.5);
}

TEST(RSquaredTest, IsAbsentWhereItMeansNothing) {
  EXPECT_FALSE(RSquared(1).Value(0).has_value());
  RSquared same(1);
  const float labels[] = {2, 2};
  same.AddLabels(labels, 2);
  EXPECT_FALSE(same.Value(1).has_value());
  RSquared diverged(1);
  const float others[] = {1, 2};
  diverged.AddLabels(others, 2);
  EXPECT_FALSE(diverged.Value(std::numeric_limits<double>::quiet_NaN()).has_value());
}

}  // namespace
}  // namespace rubato::worker
