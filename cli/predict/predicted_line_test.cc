#include "cli/predict/predicted_line.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(PredictedLineTest, IsAProbabilityWithBinaryCrossEntropy) {
  EXPECT_EQ(PredictedLine(v1::ModelConfig::BINARY_CROSS_ENTROPY, {0.0f}), "0.5");
  EXPECT_EQ(PredictedLine(v1::ModelConfig::BINARY_CROSS_ENTROPY, {1.0f}), "0.731058579");
  EXPECT_EQ(PredictedLine(v1::ModelConfig::BINARY_CROSS_ENTROPY, {1000.0f}), "1");
  EXPECT_EQ(PredictedLine(v1::ModelConfig::BINARY_CROSS_ENTROPY, {-1000.0f}), "0");
}

TEST(PredictedLineTest, IsTheMostProbableClassWithSoftmax) {
  EXPECT_EQ(PredictedLine(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY, {0, 1, 0}), "1,0.576116885");
  EXPECT_EQ(PredictedLine(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY, {2, 2}), "0,0.5");
  EXPECT_EQ(PredictedLine(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY, {1000, 0}), "0,1");
}

TEST(PredictedLineTest, IsTheOutputWithASquaredError) {
  EXPECT_EQ(PredictedLine(v1::ModelConfig::MEAN_SQUARED_ERROR, {3.5f}), "3.5");
  EXPECT_EQ(PredictedLine(v1::ModelConfig::MEAN_SQUARED_ERROR, {-1, 0.1f}), "-1,0.100000001");
}

}  // namespace
}  // namespace rubato
