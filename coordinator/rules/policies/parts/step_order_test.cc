#include "coordinator/rules/policies/parts/step_order.h"

#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

TEST(StepOrderTest, EachStepIsSortedByItself) {
  // Worker 0 is slow in the first half of the steps, worker 1 in the other.
  std::vector<double> first(8, 1), second(8, 1);
  for (int i = 0; i < 4; ++i) first[i] = second[4 + i] = 5;
  EXPECT_EQ(MeanStepOrder({first, second}), (std::vector<double>{1, 5}));
  EXPECT_EQ(MeanSteps({first, second}), (std::vector<double>{3, 3}));
}

TEST(StepOrderTest, TheLatestStepsOfWorkersThatMadeMoreAreTaken) {
  std::vector<double> more(20, 9);
  for (size_t i = 12; i < 20; ++i) more[i] = 2;
  EXPECT_EQ(MeanStepOrder({more, std::vector<double>(8, 1)}), (std::vector<double>{1, 2}));
}

TEST(StepOrderTest, TooFewStepsSayNothing) {
  EXPECT_TRUE(MeanStepOrder({}).empty());
  EXPECT_TRUE(MeanStepOrder({std::vector<double>(30, 1), std::vector<double>(7, 1)}).empty());
  EXPECT_TRUE(MeanSteps({std::vector<double>(7, 1)}).empty());
}

}  // namespace
}  // namespace rubato::coordinator
