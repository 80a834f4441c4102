#include <gtest/gtest.h>

#include "coordinator/rules/policies/policies.h"

namespace rubato::coordinator {
namespace {

class SchedulePolicyTest : public testing::Test {
 protected:
  SchedulePolicyTest() {
    config_.mutable_cluster()->set_workers(4);
    v1::ConsistencyConfig* consistency = config_.mutable_consistency();
    consistency->set_mode(v1::SYNC);
    consistency->set_quorum(2);
    auto* entry = consistency->add_schedule();
    entry->set_at_epoch(1.5);
    entry->set_mode(v1::SSP);
    entry->set_staleness_bound(3);
    entry = consistency->add_schedule();
    entry->set_at_step(100);
    entry->set_mode(v1::ASYNC);
    entry->set_learning_rate_scale(0.5);
    entry = consistency->add_schedule();
    entry->set_at_seconds(60);
    entry->set_mode(v1::SYNC);
    entry->set_quorum(3);
    entry->set_sync_every(8);
    entry->set_momentum(0.5);
    entry->set_compress(false);
    policy_ = MakeSchedulePolicy(config_);
  }
  static JobSnapshot At(int64_t step, double epoch, double seconds) {
    JobSnapshot job;
    job.step = step;
    job.epoch = epoch;
    job.seconds = seconds;
    return job;
  }

  v1::JobConfig config_;
  std::unique_ptr<ModePolicy> policy_;
};

TEST_F(SchedulePolicyTest, EachScheduledSwitchIsDueOnce) {
  EXPECT_FALSE(policy_->Decide(At(99, 1.4, 59)).has_value());
  auto change = policy_->Decide(At(100, 1.4, 59));
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::ASYNC);
  EXPECT_EQ(change->learning_rate_scale, 0.5);
  EXPECT_EQ(change->sync_every, 0u) << "as it is";
  EXPECT_EQ(change->momentum, std::nullopt) << "as it is";
  EXPECT_EQ(change->compress, std::nullopt) << "as it is";
  EXPECT_EQ(change->reason, "schedule: step 100");
  EXPECT_FALSE(policy_->Decide(At(101, 1.4, 59)).has_value());
  EXPECT_EQ(policy_->Decide(At(101, 1.5, 59))->staleness_bound, 3);
  EXPECT_EQ(policy_->Decide(At(101, 1.5, 60))->mode, v1::SYNC);
}

TEST_F(SchedulePolicyTest, OfSeveralDueSwitchesTheLastWins) {
  EXPECT_EQ(policy_->Decide(At(1000, 9, 1000))->mode, v1::SYNC);
  EXPECT_FALSE(policy_->Decide(At(1000, 9, 1000)).has_value());
}

TEST_F(SchedulePolicyTest, ARestartRepeatsNoSwitch) {
  ASSERT_TRUE(policy_->Decide(At(100, 0, 0)).has_value());
  const std::unique_ptr<ModePolicy> restarted = MakeSchedulePolicy(config_);
  ASSERT_TRUE(restarted->Restore(policy_->Memory()).ok());
  EXPECT_FALSE(restarted->Decide(At(100, 0, 0)).has_value());
  EXPECT_EQ(restarted->Decide(At(100, 1.5, 0))->mode, v1::SSP);
}

TEST_F(SchedulePolicyTest, NoMemoryIsThatOfANewPolicy) {
  ASSERT_TRUE(policy_->Decide(At(100, 0, 0)).has_value());
  ASSERT_TRUE(policy_->Restore("").ok());
  EXPECT_TRUE(policy_->Decide(At(100, 0, 0)).has_value());
}

TEST_F(SchedulePolicyTest, TheMemoryOfAnotherScheduleIsRefused) {
  EXPECT_EQ(policy_->Restore("x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(policy_->Restore("xyz").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SchedulePolicyTest, AScheduledSwitchToSyncHasItsQuorum) {
  const std::optional<PlanChange> change = policy_->Decide(At(0, 0, 60));
  EXPECT_EQ(change->quorum, 3u);
  EXPECT_EQ(change->learning_rate_scale, 1.5) << "of 3 contributions instead of 2";
  EXPECT_EQ(change->sync_every, 8u);
  EXPECT_EQ(change->momentum, 0.5);
  EXPECT_EQ(change->compress, false);
}

// Each name of the enum has a policy, and what is not in it has none.
TEST(MakeModePolicyTest, EveryPolicyOfTheConfigCanBeMade) {
  const google::protobuf::EnumDescriptor* all = v1::ConsistencyConfig::Policy_descriptor();
  for (int i = 0; i < all->value_count(); ++i) {
    const auto policy = static_cast<v1::ConsistencyConfig::Policy>(all->value(i)->number());
    v1::JobConfig config;
    config.mutable_consistency()->set_policy(policy);
    EXPECT_EQ(MakeModePolicy(config).ok(), policy != v1::ConsistencyConfig::POLICY_UNSPECIFIED)
        << all->value(i)->name();
  }
}

}  // namespace
}  // namespace rubato::coordinator
