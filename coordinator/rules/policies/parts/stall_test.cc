#include "coordinator/rules/policies/parts/stall.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rubato::coordinator {
namespace {

TEST(StallTest, ALossThatFallsIsNoStall) {
  Stall stall;
  for (int window = 0; window < 100; ++window) {
    stall.Add(2 - 0.01 * window + 0.02 * (window % 2));
    EXPECT_FALSE(stall.stalled()) << window;
  }
}

TEST(StallTest, ALossThatStaysIsOneAfterEnoughWindows) {
  Stall stall;
  for (size_t window = 1; window < 2 * Stall::kWindows; ++window) {
    stall.Add(1);
    stall.Add(std::nan(""));
    stall.Add(std::nullopt);
    EXPECT_FALSE(stall.stalled()) << window;
  }
  stall.Add(1);
  EXPECT_TRUE(stall.stalled());
  stall.Forget();
  EXPECT_FALSE(stall.stalled());
}

TEST(StallTest, OnlyTheLastWindowsCount) {
  Stall stall;
  for (int window = 0; window < 50; ++window) stall.Add(9 - 0.1 * window);
  for (size_t window = 0; window < 2 * Stall::kWindows; ++window) stall.Add(4);
  EXPECT_TRUE(stall.stalled());
}

}  // namespace
}  // namespace rubato::coordinator
