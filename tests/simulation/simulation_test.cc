#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/simulation/run_simulation.h"

namespace rubato::simulation {
namespace {

// Sanitizers make a run ten times as slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kSeeds = 200;
#else
constexpr int64_t kSeeds = 2000;
#endif

TEST(SimulationTest, HoldsTheInvariantsForEverySeed) {
  std::ostringstream out;
  SimulationOptions options;
  options.seeds = kSeeds;
  Coverage coverage;
  options.coverage = &coverage;
  EXPECT_TRUE(RunSimulation(options, out).ok()) << out.str();
  if (kSeeds < 2000) return;  // Too few for what is rare.
  for (size_t i = 0; i < static_cast<size_t>(Reached::kEnd); ++i) {
    const auto what = static_cast<Reached>(i);
    EXPECT_GT(coverage.Of(what), 0) << "no run reached " << NameOf(what);
  }
}

TEST(SimulationTest, IsTheSameRunForTheSameSeed) {
  RunOptions options;
  options.keep_trace = 100000;
  for (options.seed = 1; options.seed <= 5; ++options.seed) {
    const RunResult first = RunOnce(options);
    const RunResult second = RunOnce(options);
    EXPECT_EQ(first.trace, second.trace) << "seed " << options.seed;
    EXPECT_FALSE(first.trace.empty());
  }
}

TEST(SimulationTest, ReachesLongJobsAndManyPlans) {
  int64_t long_jobs = 0, changed = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const RunResult result = RunOnce({.seed = seed});
    long_jobs += result.steps >= 20;
    changed += result.plans >= 3;
  }
  EXPECT_GE(long_jobs, 25);
  EXPECT_GE(changed, 10);
}

TEST(SimulationTest, RefusesToRunNothing) {
  std::ostringstream out;
  SimulationOptions options;
  options.seeds = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(RunSimulation(options, out)));
}

// A second passes whenever somebody looks.
class RestlessClock : public Clock {
 public:
  absl::Time Now() const override { return now_ += absl::Seconds(1); }
  void Sleep(absl::Duration duration) override { now_ += duration; }

 private:
  mutable absl::Time now_ = absl::UnixEpoch();
};

int CountLines(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

TEST(SimulationTest, IsNotSilentForMinutes) {
  RestlessClock clock;
  std::ostringstream out, progress;
  SimulationOptions options;
  options.seeds = 11;
  options.progress = &progress;
  options.clock = &clock;
  EXPECT_TRUE(RunSimulation(options, out).ok()) << out.str();
  EXPECT_EQ(progress.str(), "5 of 11 runs, no violation, 6s left\n10 of 11 runs, no violation, 1s left\n");
  EXPECT_EQ(CountLines(out.str()), 1) << out.str();
}

TEST(SimulationTest, SaysWhatWasRunWhenItIsInterrupted) {
  std::ostringstream out;
  SimulationOptions options;
  options.seeds = 50000;
  int asked = 0;
  options.stop = [&] { return ++asked > 3; };
  const absl::Status status = RunSimulation(options, out);
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_EQ(status.message(), "stopped after 3 of 50000 runs");
  EXPECT_NE(out.str().find("stopped after 3 runs, "), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("I1 to I5, I7 and I8 held; go on with --first-seed=4\n"), std::string::npos) << out.str();
}

TEST(SimulationTest, ShowsTheTraceOfASingleSeed) {
  std::ostringstream out;
  SimulationOptions options;
  options.first_seed = 3;
  options.seeds = 1;
  EXPECT_TRUE(RunSimulation(options, out).ok());
  EXPECT_NE(out.str().find("begins step"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("seed 3: "), std::string::npos) << out.str();
}

}  // namespace
}  // namespace rubato::simulation
