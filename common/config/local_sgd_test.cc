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
