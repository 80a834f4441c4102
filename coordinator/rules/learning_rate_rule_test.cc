#include "coordinator/rules/learning_rate_rule.h"

#include <gtest/gtest.h>

namespace rubato::coordinator {
namespace {

v1::JobConfig Job(v1::OptimizerConfig::Algorithm algorithm, uint32_t quorum = 0) {
  v1::JobConfig config;
  config.mutable_cluster()->set_workers(4);
  config.mutable_consistency()->set_mode(v1::SYNC);
  config.mutable_consistency()->set_quorum(quorum);
  config.mutable_optimizer()->set_algorithm(algorithm);
  return config;
}

TEST(LearningRateRuleTest, SgdGoesWithTheContributions) {
  const v1::JobConfig job = Job(v1::OptimizerConfig::MOMENTUM);
  EXPECT_EQ(LearningRateRule(job, v1::SYNC, 0), 1);
  EXPECT_EQ(LearningRateRule(job, v1::SYNC, 3), 0.75);
  EXPECT_EQ(LearningRateRule(job, v1::ASYNC, 0), 0.25);
  EXPECT_EQ(LearningRateRule(job, v1::SSP, 0), 0.25);
}

TEST(LearningRateRuleTest, AdaptiveOptimizersGoWithTheirRoot) {
  EXPECT_EQ(LearningRateRule(Job(v1::OptimizerConfig::ADAM), v1::ASYNC, 0), 0.5);
}

TEST(LearningRateRuleTest, TheConfigsRateIsForTheQuorumThatTheJobBeginsWith) {
  const v1::JobConfig job = Job(v1::OptimizerConfig::SGD, 2);
  EXPECT_EQ(LearningRateRule(job, v1::SYNC, 2), 1);
  EXPECT_EQ(LearningRateRule(job, v1::SYNC, 0), 2);
  EXPECT_EQ(LearningRateRule(job, v1::ASYNC, 0), 0.5);
}

TEST(LearningRateRuleTest, ACompensationThatDividesTheRateIsNotCountedTwice) {
  v1::JobConfig job = Job(v1::OptimizerConfig::SGD);
  job.mutable_consistency()->mutable_compensation()->mutable_staleness_aware();
  EXPECT_EQ(LearningRateRule(job, v1::ASYNC, 0), 1);
  EXPECT_EQ(LearningRateRule(job, v1::SYNC, 2), 0.5);
  job.mutable_consistency()->mutable_compensation()->mutable_delayed_nesterov()->set_period(2);
  EXPECT_EQ(LearningRateRule(job, v1::SSP, 0), 0.5);
  job.mutable_consistency()->mutable_compensation()->mutable_dc_asgd();
  EXPECT_EQ(LearningRateRule(job, v1::ASYNC, 0), 0.25);
}

}  // namespace
}  // namespace rubato::coordinator
