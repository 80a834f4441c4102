#include "cli/capacity/step_tally.h"

#include <cmath>
#include <functional>

#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

constexpr SimTime kMillisecond = 1'000'000;

// One worker whose steps take as long as they are told to.
class StepTallyTest : public testing::Test, public EventTarget {
 protected:
  void OnEvent(uint64_t) override {}

  // Steps until the tally has enough, or there were `most`; returns how many.
  int64_t Step(StepTally* tally, const std::function<SimTime(int64_t)>& length, int64_t most) {
    for (int64_t step = 0; step < most; ++step) {
      if (tally->done()) return step;
      queue_.At(queue_.now() + length(step), this, 0);
      queue_.RunNext();
      tally->OnStep(0, {.computing = length(step)}, step % 4);
    }
    return most;
  }

  EventQueue queue_;
};

TEST_F(StepTallyTest, EndsEarlyWhereStepsAreAlike) {
  StepTally tally({.queue = &queue_});
  EXPECT_EQ(Step(
                &tally, [](int64_t) { return 2 * kMillisecond; }, 2000),
            40);  // 10 of them to warm up.
  EXPECT_NEAR(tally.rate(), 500, 1e-6);
  EXPECT_NEAR(tally.rate_error(), 0, 1e-6);
  EXPECT_EQ(tally.steps(), 30);
  EXPECT_EQ(tally.warm_at(), 20 * kMillisecond);
  EXPECT_NEAR(tally.StepQuantile(0.5), 2e-3, 1e-9);
}

TEST_F(StepTallyTest, GoesOnWhereTheyDiffer) {
  StepTally tally({.queue = &queue_});
  // Bursts that are longer than a batch.
  const int64_t steps = Step(
      &tally, [](int64_t step) { return step / 10 % 2 == 0 ? kMillisecond : 3 * kMillisecond; }, 5000);
  EXPECT_EQ(steps, 1010);
  EXPECT_NEAR(tally.rate(), 500, 10);
  EXPECT_GT(tally.rate_error(), StepTally::kGoodEnough * tally.rate());
}

TEST_F(StepTallyTest, MeasuresAsManyRoundsAsItIsTold) {
  StepTally tally({.queue = &queue_, .rounds = 200});
  EXPECT_EQ(Step(
                &tally, [](int64_t) { return kMillisecond; }, 5000),
            210);
}

TEST_F(StepTallyTest, WhatWarmsUpIsLeftOut) {
  StepTally tally({.queue = &queue_});
  Step(
      &tally, [](int64_t step) { return step < 10 ? 1000 * kMillisecond : kMillisecond; }, 2000);
  EXPECT_NEAR(tally.rate(), 1000, 1e-6);
  EXPECT_NEAR(tally.staleness_mean(), 1.5, 0.1);
  EXPECT_EQ(tally.StalenessQuantile(0.99), 3);
}

}  // namespace
}  // namespace rubato::capacity
