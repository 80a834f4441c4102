#include "server/partition_progress.h"

#include <gtest/gtest.h>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

// Of a partition that holds step 187 of worker 1, as one of its messages sees it.
PartitionProgress Holds(const std::vector<uint32_t>& waiting_for, bool waits_for_coordinator = false) {
  PartitionProgress progress;
  HeldStart& held = progress.held.emplace_back();
  held.worker = 1;
  held.step = 187;
  for (uint32_t worker : waiting_for) held.waiting_for.push_back(Worker(worker));
  held.waits_for_coordinator = waits_for_coordinator;
  return progress;
}

TEST(PartitionProgressTest, AStepThatSeveralPartitionsHoldIsToldOnce) {
  PartitionProgress two = Holds({0});
  two.held.push_back(two.held.front());  // Two messages of one partition.
  const v1::ServerProgress total = SumProgress({two, Holds({0}), Holds({0})});
  ASSERT_EQ(total.held_size(), 1);
  EXPECT_EQ(total.held(0).worker(), 1u);
  EXPECT_EQ(total.held(0).step(), 187);
  EXPECT_EQ(total.held(0).waiting_for(), "worker 0");
}

TEST(PartitionProgressTest, AStepIsToldWithEverybodyWhomAPartitionWaitsFor) {
  const v1::ServerProgress total = SumProgress({Holds({2}), Holds({0, 2}), Holds({}, true)});
  ASSERT_EQ(total.held_size(), 1);
  EXPECT_EQ(total.held(0).waiting_for(), "worker 0, worker 2, the coordinator to commit or abort a plan change");
}

TEST(PartitionProgressTest, StepsOfSeveralWorkersAreToldEach) {
  PartitionProgress other = Holds({0});
  other.held.front().worker = 2;
  PartitionProgress later = Holds({0});
  later.held.front().step = 188;
  const v1::ServerProgress total = SumProgress({other, later, Holds({0})});
  ASSERT_EQ(total.held_size(), 3);
  EXPECT_EQ(total.held(0).worker(), 1u);
  EXPECT_EQ(total.held(1).step(), 188);
  EXPECT_EQ(total.held(2).worker(), 2u);
}

TEST(PartitionProgressTest, AddsCountsAndTakesTheLowestClock) {
  PartitionProgress first, second;
  first.counts.set_updates_total(3);
  second.counts.set_updates_total(4);
  second.counts.set_highest_started_step(9);
  first.counts.mutable_gradient_moments()->set_signal(-1);
  second.counts.mutable_gradient_moments()->set_signal(3);
  for (PartitionProgress* partition : {&first, &second}) {
    v1::MemberClock* clock = partition->counts.add_clocks();
    clock->set_worker(5);
    clock->set_clock(partition == &first ? 7 : 6);
  }
  const v1::ServerProgress total = SumProgress({first, second});
  EXPECT_EQ(total.updates_total(), 7);
  EXPECT_EQ(total.highest_started_step(), 9);
  EXPECT_EQ(total.gradient_moments().signal(), 2);
  ASSERT_EQ(total.clocks_size(), 1);
  EXPECT_EQ(total.clocks(0).clock(), 6);
  EXPECT_EQ(SumProgress({}).highest_started_step(), -1);
}

}  // namespace
}  // namespace rubato::server
