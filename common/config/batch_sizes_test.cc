#include "common/config/batch_sizes.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

v1::JobConfig Job() {
  v1::JobConfig config;
  config.mutable_training()->set_batch_size(10);
  config.mutable_consistency()->set_policy(v1::ConsistencyConfig::BALANCE);
  config.mutable_consistency()->mutable_balance()->set_batch_max(1.75);
  return config;
}

v1::Plan PlanOf(const std::vector<uint32_t>& decided, const std::vector<uint32_t>& sizes) {
  v1::Plan plan;
  for (uint32_t index : decided) plan.add_decided_members(index);
  for (uint32_t size : sizes) plan.add_batch_sizes(size);
  return plan;
}

TEST(BatchSizesTest, APlanSaysItByMember) {
  const v1::Plan plan = PlanOf({0, 2, 5}, {5, 15, 10});
  EXPECT_EQ(BatchSize(Job(), plan, 0), 5);
  EXPECT_EQ(BatchSize(Job(), plan, 2), 15);
  EXPECT_EQ(BatchSize(Job(), plan, 5), 10);
}

TEST(BatchSizesTest, WhoIsNotInThePlanHasTheConfigs) {
  EXPECT_EQ(BatchSize(Job(), PlanOf({0, 2}, {5, 15}), 1), 10);
  EXPECT_EQ(BatchSize(Job(), PlanOf({0, 2}, {}), 2), 10);
  EXPECT_EQ(BatchSize(Job(), PlanOf({0, 2}, {5}), 2), 10);
}

TEST(BatchSizesTest, NobodyGetsMoreThanThereIsMemoryFor) {
  EXPECT_EQ(LargestBatch(Job()), 17);
  EXPECT_EQ(BatchSize(Job(), PlanOf({0}, {100}), 0), 17);
  EXPECT_EQ(BatchSize(Job(), PlanOf({0}, {0}), 0), 1);
}

TEST(BatchSizesTest, OtherPoliciesHaveEqualBatches) {
  v1::JobConfig job = Job();
  job.mutable_consistency()->set_policy(v1::ConsistencyConfig::QUORUM);
  EXPECT_EQ(LargestBatch(job), 10);
}

}  // namespace
}  // namespace rubato
