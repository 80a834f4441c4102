#include "worker/training/slowdown.h"

#include <gtest/gtest.h>

#include <string>

namespace rubato::worker {
namespace {

constexpr Straggler::Place kPlace = {.seed = 1, .worker = 1, .workers = 2};

StragglerModel Model(const std::string& text) { return *ParseStraggler(text); }

// Until the thread has used some processor time.
void Compute() {
  const absl::Duration begin = ThreadCpuTime();
  while (ThreadCpuTime() - begin < absl::Milliseconds(2)) {
  }
}

TEST(SlowdownTest, SleepsWhatIsAddedTimesTheFactor) {
  FakeClock clock;
  Slowdown slowdown(Model("rank+sleep=30ms"), kPlace, &clock);
  const absl::Time begin = clock.Now();
  slowdown.BeginStep(0);
  EXPECT_TRUE(slowdown.pauses());
  slowdown.Pause();
  EXPECT_EQ(clock.Now() - begin, absl::Milliseconds(60));
}

TEST(SlowdownTest, ComputingTakesLonger) {
  FakeClock clock;
  Slowdown slowdown(Model("x1000"), kPlace, &clock);
  const absl::Time begin = clock.Now();
  slowdown.BeginStep(0);
  EXPECT_FALSE(slowdown.pauses());
  {
    Slowdown::Computing computing(&slowdown);
    Compute();
  }
  EXPECT_GE(clock.Now() - begin, absl::Milliseconds(2 * 999));
}

TEST(SlowdownTest, StepsDiffer) {
  FakeClock clock;
  Slowdown slowdown(Model("sleep=1ms+bimodal=x6,0.5"), kPlace, &clock);
  Straggler same(Model("sleep=1ms+bimodal=x6,0.5"), kPlace);
  for (int64_t step = 0; step < 20; ++step) {
    const absl::Time begin = clock.Now();
    slowdown.BeginStep(step);
    slowdown.Pause();
    EXPECT_EQ(clock.Now() - begin, same.At(step).pause());
  }
}

TEST(SlowdownTest, AWorkerWithoutAModelIsAsFastAsItIs) {
  FakeClock clock;
  Slowdown slowdown({}, kPlace, &clock);
  const absl::Time begin = clock.Now();
  slowdown.BeginStep(0);
  EXPECT_FALSE(slowdown.pauses());
  slowdown.Pause();
  {
    Slowdown::Computing computing(&slowdown), none(nullptr);
    Compute();
  }
  EXPECT_EQ(clock.Now(), begin);
}

TEST(SlowdownTest, NothingIsSleptBeforeTheWorkerLeaves) {
  FakeClock clock;
  Slowdown slowdown(Model("x1000+sleep=10m"), kPlace, &clock);
  const absl::Time begin = clock.Now();
  slowdown.BeginStep(0);
  slowdown.End();
  slowdown.Pause();
  {
    Slowdown::Computing computing(&slowdown);
    Compute();
  }
  EXPECT_EQ(clock.Now(), begin);
}

}  // namespace
}  // namespace rubato::worker
