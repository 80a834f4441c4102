#include "coordinator/rules/policies/parts/loss_band.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rubato::coordinator {
namespace {

LossBand Frozen() {
  LossBand band;
  for (double loss : {9.0, 1.0, 1.25, 0.75, 1.25, 0.75}) band.Add(loss);  // The first is forgotten; 1 +- 0.25.
  band.Freeze();
  return band;
}

TEST(LossBandTest, SeveralWindowsInARowMustBeOver) {
  LossBand band = Frozen();
  for (double loss : {1.8, 1.8, 1.7, 1.8, 1.8}) band.Add(loss);
  EXPECT_FALSE(band.left());
  band.Add(1.8);
  EXPECT_TRUE(band.left());
  band.Add(1);
  EXPECT_TRUE(band.left()) << "it stays so";
}

TEST(LossBandTest, ALossThatIsNotFiniteLeavesAtOnce) {
  LossBand band = Frozen();
  band.Add(std::nan(""));
  EXPECT_TRUE(band.left());
}

TEST(LossBandTest, NothingLeavesBeforeAChange) {
  LossBand band;
  for (double loss : {1.0, 2.0, 300.0, static_cast<double>(INFINITY), 4e5, 4e5}) band.Add(loss);
  EXPECT_FALSE(band.left());
}

TEST(LossBandTest, WithFewWindowsTheLossMustRiseByHalf) {
  LossBand band;
  band.Add(1);
  band.Freeze();
  for (int window = 0; window < 5; ++window) band.Add(1.4);
  EXPECT_FALSE(band.left());
  for (int window = 0; window < 3; ++window) band.Add(1.6);
  EXPECT_TRUE(band.left());
}

TEST(LossBandTest, WithoutWindowsOnlyALossThatIsNotFiniteLeaves) {
  LossBand band;
  band.Freeze();
  for (int window = 0; window < 5; ++window) band.Add(1e9);
  band.Add(std::nullopt);
  EXPECT_FALSE(band.left());
  band.Add(INFINITY);
  EXPECT_TRUE(band.left());
}

}  // namespace
}  // namespace rubato::coordinator
