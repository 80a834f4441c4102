#include "cli/capacity/bottleneck.h"

#include "cli/capacity/testing/jobs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

using testing::HasSubstr;

SimulationResult Result(const StepSeconds& step, const std::vector<ServerLoad>& servers) {
  SimulationResult result;
  result.step = step;
  result.servers = servers;
  return result;
}

TEST(BottleneckTest, WorkersThatComputeAllTheTime) {
  const Bottleneck found = FindBottleneck(
      SmallLayout(), Result({.total = 1, .computing = 0.9, .barrier = 0.05, .server = 0.05}, {{.partition = 0.2}}));
  EXPECT_EQ(found.name, "computing");
}

TEST(BottleneckTest, StragglersAreTheBarrier) {
  const SimulationResult result =
      Result({.total = 1, .computing = 0.5, .barrier = 0.4, .server = 0.1}, {{.partition = 1}});
  const Bottleneck sync = FindBottleneck(SmallLayout({"cluster.workers=2"}), result);
  EXPECT_EQ(sync.name, "barrier");
  EXPECT_THAT(sync.advice, HasSubstr("consistency.quorum"));
  const Bottleneck ssp = FindBottleneck(SmallLayout({"consistency.mode=SSP", "consistency.staleness_bound=2"}), result);
  EXPECT_THAT(ssp.advice, HasSubstr("consistency.staleness_bound"));
}

TEST(BottleneckTest, TheBusiestThingThatExchangesUse) {
  const StepSeconds step = {.total = 1, .computing = 0.3, .network = 0.5, .server = 0.2};
  const JobLayout layout = SmallLayout();
  const Bottleneck link = FindBottleneck(
      layout, Result(step, {{.server = 0, .partition = 0.2, .link_in = 0.5}, {.server = 1, .link_in = 0.9}}));
  EXPECT_EQ(link.name, "server link in");
  EXPECT_THAT(link.finding, HasSubstr("server 1, 90 %"));
  EXPECT_THAT(link.advice, HasSubstr("compression.push"));
  SimulationResult worker = Result(step, {{.partition = 0.2}});
  worker.busiest_worker.link_in = 0.8;
  EXPECT_EQ(FindBottleneck(layout, worker).name, "worker link in");
  EXPECT_EQ(FindBottleneck(layout, Result(step, {{.partition = 0.1}})).name, "latency");
}

TEST(BottleneckTest, ProcessorsThatAreFull) {
  SimulationResult result = Result({.total = 1, .computing = 0.95}, {{.partition = 0.2}});
  result.processors = 0.97;
  EXPECT_EQ(FindBottleneck(SmallLayout(), result).name, "processors");
}

TEST(BottleneckTest, SaturationIsWhereTheStepIsAsLongAsTheResourceNeeds) {
  // 10 workers keep it busy for 0.1 s of each second, of which nothing is spent in queues: 100 would all of it.
  const JobLayout layout = SmallLayout({"cluster.workers=10"});
  const auto found = FindSaturation(layout, Result({.total = 1}, {{.server = 0, .partition = 0.1, .transport = 0.05}}));
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(found->workers, 100, 1e-9);
  EXPECT_EQ(found->resource, "partition of server 0");
  // It is full, and three quarters of the step are spent in queues: a quarter of the workers would do.
  const auto full = FindSaturation(layout, Result({.total = 1, .queued = 0.75}, {{.partition = 1}}));
  EXPECT_NEAR(full->workers, 2.5, 1e-9);
  EXPECT_FALSE(FindSaturation(layout, Result({.total = 1}, {{.partition = 0}})).has_value());
}

}  // namespace
}  // namespace rubato::capacity
