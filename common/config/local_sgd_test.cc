#include "common/config/local_sgd.h"

#include <gtest/gtest.h>

#include <limits>

namespace rubato {
namespace {

v1::JobConfig Job(int64_t sync_every) {
  v1::JobConfig config;
  config.mutable_training()->set_batch_size(32);
  config.mutable_consistency()->set_sync_every(sync_every);
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  config.mutable_optimizer()->set_learning_rate(0.01);
  config.mutable_optimizer()->set_weight_decay(0.1);
  config.mutable_optimizer()->mutable_schedule()->set_warmup(2);
  return config;
}

TEST(LocalSgdTest, AStepIsABatchUnlessTheJobSaysOtherwise) {
  for (int64_t sync_every : {0, 1}) {
    EXPECT_EQ(BatchesPerStep(Job(sync_every)), 1);
    EXPECT_EQ(ExamplesPerStep(Job(sync_every)), 32);
    EXPECT_EQ(ServerOptimizer(Job(sync_every)).SerializeAsString(), Job(sync_every).optimizer().SerializeAsString());
  }
}

TEST(LocalSgdTest, AStepHasSyncEveryBatches) {
  EXPECT_EQ(BatchesPerStep(Job(5)), 5);
  EXPECT_EQ(ExamplesPerStep(Job(5)), 160);
  EXPECT_EQ(ExamplesPerStep(Job(std::numeric_limits<int64_t>::max())), std::numeric_limits<int64_t>::max());
}

TEST(LocalSgdTest, AJobIsLocalFromItsBeginningWhereAPlanMayMakeItSo) {
  EXPECT_FALSE(TrainsLocally(Job(1)));
  EXPECT_TRUE(TrainsLocally(Job(2)));
  EXPECT_EQ(WhyLocal(Job(2)), "consistency.sync_every is 2");

  v1::JobConfig scheduled = Job(2);
  scheduled.mutable_consistency()->add_schedule()->set_sync_every(8);
  scheduled.mutable_consistency()->add_schedule()->set_mode(v1::ASYNC);
  EXPECT_EQ(MostBatchesPerStep(scheduled), 8);
  EXPECT_EQ(WhyLocal(scheduled), "consistency.schedule[0].sync_every is 8");
  EXPECT_EQ(ExamplesPerStep(scheduled), 256);
  EXPECT_EQ(BatchesPerStep(scheduled), 2);
  scheduled.mutable_consistency()->set_sync_every(1);
  EXPECT_TRUE(TrainsLocally(scheduled));
  EXPECT_EQ(ServerOptimizer(scheduled).learning_rate(), 1);

  v1::JobConfig measured = Job(1);
  measured.mutable_consistency()->mutable_post_local()->set_sync_every(16);
  EXPECT_FALSE(TrainsLocally(measured)) << "another policy decides";
  measured.mutable_consistency()->set_policy(v1::ConsistencyConfig::POST_LOCAL);
  EXPECT_EQ(MostBatchesPerStep(measured), 16);
  EXPECT_EQ(WhyLocal(measured), "consistency.post_local.sync_every is 16");
}

TEST(LocalSgdTest, AStepHasAsManyBatchesAsThePlanSays) {
  v1::JobConfig job = Job(2);
  job.mutable_consistency()->add_schedule()->set_sync_every(8);
  v1::Plan plan;
  EXPECT_EQ(BatchesPerStep(job, plan), 2);
  plan.set_sync_every(5);
  EXPECT_EQ(BatchesPerStep(job, plan), 5);
  plan.set_sync_every(100);
  EXPECT_EQ(BatchesPerStep(job, plan), 8) << "for more there is no memory";
}

TEST(LocalSgdTest, ServersSubtractWhatWorkersPush) {
  const v1::OptimizerConfig optimizer = ServerOptimizer(Job(2));
  EXPECT_EQ(optimizer.algorithm(), v1::OptimizerConfig::SGD);
  EXPECT_EQ(optimizer.learning_rate(), 1);
  EXPECT_EQ(optimizer.weight_decay(), 0);
  EXPECT_EQ(optimizer.schedule().warmup(), 0);
  EXPECT_TRUE(optimizer.schedule().has_constant());
}

TEST(LocalSgdTest, DelayedNesterovIsTheServersOptimizer) {
  for (int64_t sync_every : {1, 2}) {
    v1::JobConfig job = Job(sync_every);
    v1::DelayedNesterov* method = job.mutable_consistency()->mutable_compensation()->mutable_delayed_nesterov();
    method->set_momentum(0.8);
    method->set_learning_rate(0.7);
    const v1::OptimizerConfig optimizer = ServerOptimizer(job);
    EXPECT_EQ(optimizer.algorithm(), v1::OptimizerConfig::NESTEROV);
    EXPECT_EQ(optimizer.momentum(), 0.8);
    EXPECT_EQ(optimizer.learning_rate(), sync_every == 1 ? 0.01 : 0.7);
    EXPECT_EQ(optimizer.weight_decay(), sync_every == 1 ? 0.1 : 0);
  }
}

}  // namespace
}  // namespace rubato
