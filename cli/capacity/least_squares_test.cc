#include "cli/capacity/least_squares.h"

#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

TEST(LeastSquaresTest, FindsWhatWasPutIn) {
  LeastSquares fit;
  for (const double chunks : {1.0, 2.0, 7.0}) {
    for (const double bytes : {100.0, 5e6, 1e7}) fit.Add({chunks, bytes}, 3e-6 + 2e-6 * chunks + 1e-9 * bytes);
  }
  const auto c = fit.Solve();
  EXPECT_NEAR(c[0], 3e-6, 1e-9);
  EXPECT_NEAR(c[1], 2e-6, 1e-9);
  EXPECT_NEAR(c[2], 1e-9, 1e-13);
}

TEST(LeastSquaresTest, WithoutNegativeCoefficients) {
  LeastSquares fit;
  // Falls with x[0]: the best that does not is the mean.
  for (const double x : {1.0, 2.0, 3.0}) fit.Add({x, 0}, 10 - x);
  const auto c = fit.Solve();
  EXPECT_NEAR(c[0], 8, 1e-9);
  EXPECT_EQ(c[1], 0);
  EXPECT_EQ(c[2], 0);
}

TEST(LeastSquaresTest, TakesTheFewestCoefficientsWhereObservationsDoNotTellThemApart) {
  LeastSquares fit;
  for (int i = 0; i < 5; ++i) fit.Add({4, 1000}, 6);
  const auto c = fit.Solve();
  EXPECT_NEAR(c[0], 6, 1e-9);
  EXPECT_EQ(c[1], 0);
  EXPECT_EQ(c[2], 0);
}

TEST(LeastSquaresTest, OfNothingEverythingIsNothing) {
  const auto c = LeastSquares().Solve();
  for (const double one : c) EXPECT_EQ(one, 0);
}

}  // namespace
}  // namespace rubato::capacity
