#include "worker/evaluator/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rubato::worker {
namespace {

TEST(CalibrationTest, IsTheMeanProbabilityByTheShareOfOnes) {
  Calibration calibration;
  // Probabilities 1/2, 3/4 and 1/4, and two of three examples of class 1.
  calibration.Add(0, 1);
  calibration.Add(std::log(3.0f), 0);
  calibration.Add(-std::log(3.0f), 1);
  EXPECT_NEAR(*calibration.Value(), 0.75, 1e-7);
}

TEST(CalibrationTest, CertaintyIsAProbability) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Calibration calibration;
  calibration.Add(kInf, 1);
  calibration.Add(-kInf, 0);
  calibration.Add(1000, 0);
  EXPECT_EQ(*calibration.Value(), 2);
}

TEST(CalibrationTest, IsAbsentWithoutOnesAndForNaN) {
  Calibration calibration;
  calibration.Add(1, 0);
  EXPECT_FALSE(calibration.Value().has_value());
  calibration.Add(std::nanf(""), 1);
  EXPECT_FALSE(calibration.Value().has_value());
}

}  // namespace
}  // namespace rubato::worker
