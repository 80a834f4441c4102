#include "cli/capacity/simulation.h"

#include <cmath>

#include "cli/capacity/testing/jobs.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

constexpr double kMs = 1e-3;

// Forward and backward of the one layer.
Costs Computing(double forward, double backward) {
  Costs costs;
  costs.steps.push_back({.forward = {forward}, .backward = {backward}});
  return costs;
}

SimulationResult SimulateJob(const JobLayout& layout, const Costs& costs, SimulationOptions options = {}) {
  options.layout = &layout;
  options.costs = &costs;
  absl::StatusOr<SimulationResult> result = Simulate(options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(SimulationResult());
}

std::vector<StragglerModel> Stragglers(const std::string& model, int workers) {
  absl::StatusOr<StragglerModel> parsed = ParseStraggler(model);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return std::vector<StragglerModel>(static_cast<size_t>(workers), parsed.value_or(StragglerModel()));
}

TEST(SimulationTest, OneWorkersStepIsTheSumOfItsParts) {
  const JobLayout layout = SmallLayout();
  ASSERT_EQ(layout.batches(), 1);
  Costs costs = Computing(2 * kMs, 3 * kMs);
  costs.steps[0].lead = 1 * kMs;
  costs.transport.fixed = 0.1 * kMs;
  costs.server = {.receive = {.fixed = 0.2 * kMs},
                  .rules = {.fixed = 0.3 * kMs},
                  .update = {.fixed = 0.2 * kMs},  // Of two chunks.
                  .answer = {.fixed = 0.5 * kMs},
                  .wake = {.fixed = 100 * kMs}};
  const SimulationResult result = SimulateJob(layout, costs);
  // The exchange takes 4 * 0.1 + 0.2 + 0.3 + 2 * 0.2 + 0.5 = 1.8 ms, the first of which the worker has something to do.
  EXPECT_NEAR(result.step.total, 6.8 * kMs, 1e-9);
  EXPECT_NEAR(result.step.computing, 6 * kMs, 1e-9);
  EXPECT_NEAR(result.step.network, 0.2 * kMs, 1e-9);
  EXPECT_NEAR(result.step.server, 0.6 * kMs, 1e-9);
  EXPECT_NEAR(result.step.barrier, 0, 1e-9);
  EXPECT_NEAR(result.step.queued, 0, 1e-9);
  EXPECT_NEAR(result.worker_steps_per_second, 1 / (6.8 * kMs), 0.01);
  EXPECT_NEAR(result.servers[0].partition, 1.4 / 6.8, 1e-3);
  EXPECT_NEAR(result.servers[0].transport, 0.2 / 6.8, 1e-3);
  EXPECT_NEAR(result.updates_per_second, 1 / (6.8 * kMs), 1);
  EXPECT_EQ(result.staleness_p99, 0);
}

TEST(SimulationTest, SyncTakesAsLongAsTheSlowestAndItsReductionGrowsWithTheWorkers) {
  const JobLayout layout = SmallLayout({"cluster.workers=8"});
  Costs costs = Computing(0, 10 * kMs);
  // 65 * 16 floats.
  costs.server.update.per_contributed_byte = 1 * kMs / (65 * 16 * 4);
  const SimulationResult result = SimulateJob(layout, costs);
  EXPECT_NEAR(result.step.total, 18 * kMs, 1e-6);
  EXPECT_NEAR(result.step.server, 8 * kMs, 1e-6);
  EXPECT_NEAR(result.contributions_per_second, 8 * result.updates_per_second, 1);
}

// A step of sync is slow if one of its workers is: 6 times as long with probability 1 - (7/8)^16.
TEST(SimulationTest, SyncUnderBimodalStragglersTakesTheExpectedMaximum) {
  const JobLayout layout = SmallLayout({"cluster.workers=16"});
  const Costs costs = Computing(0, 1e-9);
  const SimulationResult result = SimulateJob(
      layout, costs, {.stragglers = Stragglers("sleep=10ms+bimodal=x6,0.125", 16), .seed = 7, .steps = 1000});
  const double slow = 1 - std::pow(7.0 / 8, 16);
  const double expected = 10 * kMs * (1 + 5 * slow);
  EXPECT_NEAR(result.step.total, expected, 0.03 * expected);
  // What a worker does not compute itself, it waits for others.
  const double mean = 10 * kMs * (1 + 5.0 / 8);
  EXPECT_NEAR(result.step.barrier, expected - mean, 0.05 * expected);
}

TEST(SimulationTest, AsyncUnderBimodalStragglersTakesTheMean) {
  const JobLayout layout = SmallLayout({"cluster.workers=16", "consistency.mode=ASYNC"});
  const Costs costs = Computing(0, 1e-9);
  const SimulationResult result = SimulateJob(
      layout, costs, {.stragglers = Stragglers("sleep=10ms+bimodal=x6,0.125", 16), .seed = 7, .steps = 1000});
  const double mean = 10 * kMs * (1 + 5.0 / 8);
  EXPECT_NEAR(result.step.total, mean, 0.03 * mean);
  EXPECT_NEAR(result.step.barrier, 0, 1e-6);
  // While a worker computes, each other one pushes once on average.
  EXPECT_NEAR(result.staleness_mean, 15, 0.5);
}

TEST(SimulationTest, WithABoundNobodyIsFasterThanTheSlowest) {
  const JobLayout layout = SmallLayout({"cluster.workers=4", "consistency.mode=SSP", "consistency.staleness_bound=2"});
  const Costs costs = Computing(0, 10 * kMs);
  std::vector<StragglerModel> stragglers = Stragglers("x1", 4);
  stragglers[2] = Stragglers("x4", 1)[0];
  const SimulationResult result = SimulateJob(layout, costs, {.stragglers = stragglers, .steps = 100});
  EXPECT_NEAR(result.worker_steps_per_second, 4 / (40 * kMs), 1);
}

TEST(SimulationTest, AQuorumDropsTheLateOnes) {
  const JobLayout layout = SmallLayout({"cluster.workers=4", "consistency.quorum=3"});
  const Costs costs = Computing(0, 10 * kMs);
  std::vector<StragglerModel> stragglers = Stragglers("x1", 4);
  stragglers[1] = Stragglers("x5", 1)[0];
  const SimulationResult result = SimulateJob(layout, costs, {.stragglers = stragglers, .steps = 100});
  EXPECT_NEAR(result.updates_per_second, 1 / (10 * kMs), 2);
  EXPECT_NEAR(result.contributions_per_second, 3 * result.updates_per_second, 1);
}

TEST(SimulationTest, APartitionThatIsFullServesAsManyAsItCan) {
  const JobLayout layout = SmallLayout({"cluster.workers=20", "consistency.mode=ASYNC"});
  Costs costs = Computing(0, 1 * kMs);
  costs.server.rules.fixed = 1 * kMs;
  const SimulationResult result = SimulateJob(layout, costs);
  EXPECT_NEAR(result.worker_steps_per_second, 1000, 2);
  EXPECT_NEAR(result.servers[0].partition, 1, 1e-3);
  // Of 20 ms all but the two that somebody works for it is spent in the queue.
  EXPECT_NEAR(result.step.queued, 18 * kMs, 0.1 * kMs);
}

TEST(SimulationTest, ALinkThatIsFullCarriesAsMuchAsItCan) {
  const JobLayout layout = SmallLayout({"cluster.workers=20", "consistency.mode=ASYNC"});
  const Costs costs = Computing(0, 1 * kMs);
  const double bytes = 65 * 16 * 4;
  const SimulationResult result =
      SimulateJob(layout, costs, {.server_links = {{.bytes_per_second = bytes / (1 * kMs)}}});
  EXPECT_NEAR(result.worker_steps_per_second, 1000, 2);
  EXPECT_NEAR(result.servers[0].link_in, 1, 1e-3);
  EXPECT_NEAR(result.servers[0].link_out, 1, 1e-3);
  EXPECT_EQ(result.busiest_worker.link_out, 0);
}

TEST(SimulationTest, TasksOfOneMachineShareItsProcessors) {
  const JobLayout layout = SmallLayout({"cluster.workers=8"});
  const Costs costs = Computing(0, 10 * kMs);
  const SimulationResult result = SimulateJob(layout, costs, {.shared_processors = 2});
  EXPECT_NEAR(result.step.total, 40 * kMs, 1e-6);
  EXPECT_NEAR(result.processors, 1, 1e-6);
}

TEST(SimulationTest, TheSameOptionsGiveTheSameResult) {
  const JobLayout layout = SmallLayout({"cluster.workers=5", "consistency.mode=ASYNC", "cluster.servers=2"});
  Costs costs = Computing(1 * kMs, 2 * kMs);
  costs.steps.push_back({.forward = {3 * kMs}, .backward = {1 * kMs}});
  costs.transport.fixed = 0.05 * kMs;
  const SimulationOptions options = {.stragglers = Stragglers("exp=5ms", 5), .seed = 3};
  const SimulationResult a = SimulateJob(layout, costs, options), b = SimulateJob(layout, costs, options);
  EXPECT_EQ(a.events, b.events);
  EXPECT_EQ(a.virtual_seconds, b.virtual_seconds);
  EXPECT_EQ(a.step.p99, b.step.p99);
  SimulationOptions other = options;
  other.seed = 4;
  EXPECT_NE(SimulateJob(layout, costs, other).virtual_seconds, a.virtual_seconds);
}

}  // namespace
}  // namespace rubato::capacity
