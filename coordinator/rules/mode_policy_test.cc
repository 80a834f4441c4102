#include "coordinator/rules/mode_policy.h"

#include <gtest/gtest.h>

#include <limits>

namespace rubato::coordinator {
namespace {

v1::ConsistencyConfig Config() {
  v1::ConsistencyConfig config;
  config.set_mode(v1::SYNC);
  config.set_quorum(2);
  auto* entry = config.add_schedule();
  entry->set_at_epoch(1.5);
  entry->set_mode(v1::SSP);
  entry->set_staleness_bound(3);
  entry = config.add_schedule();
  entry->set_at_step(100);
  entry->set_mode(v1::ASYNC);
  entry->set_learning_rate_scale(0.5);
  entry = config.add_schedule();
  entry->set_at_seconds(60);
  entry->set_mode(v1::SYNC);
  return config;
}

TEST(ModePolicy, StartsInTheConfiguredMode) {
  ModePolicy policy(Config());
  EXPECT_EQ(policy.Initial().mode, v1::SYNC);
  EXPECT_EQ(policy.Initial().quorum, 2u);
}

TEST(ModePolicy, EachScheduledSwitchIsDueOnce) {
  ModePolicy policy(Config());
  EXPECT_FALSE(policy.Due({.step = 99, .epoch = 1.4, .seconds = 59}).has_value());
  auto change = policy.Due({.step = 100, .epoch = 1.4, .seconds = 59});
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->mode, v1::ASYNC);
  EXPECT_EQ(change->learning_rate_scale, 0.5);
  EXPECT_EQ(change->reason, "schedule: step 100");
  EXPECT_FALSE(policy.Due({.step = 101, .epoch = 1.4, .seconds = 59}).has_value());
  EXPECT_EQ(policy.Due({.step = 101, .epoch = 1.5, .seconds = 59})->staleness_bound, 3);
  EXPECT_EQ(policy.Due({.step = 101, .epoch = 1.5, .seconds = 60})->mode, v1::SYNC);
}

TEST(ModePolicy, OfSeveralDueSwitchesTheLastWins) {
  ModePolicy policy(Config());
  EXPECT_EQ(policy.Due({.step = 1000, .epoch = 9, .seconds = 1000})->mode, v1::SYNC);
  EXPECT_FALSE(policy.Due({.step = 1000, .epoch = 9, .seconds = 1000}).has_value());
}

TEST(ModePolicy, ARestartRepeatsNoSwitch) {
  ModePolicy policy(Config());
  policy.MarkDone(2);
  EXPECT_FALSE(policy.Due({.step = 100, .epoch = 0, .seconds = 0}).has_value());
}

class CheckSwitchTest : public testing::Test {
 protected:
  CheckSwitchTest() { config_.mutable_cluster()->set_workers(3); }
  absl::Status Check(v1::Mode mode, int64_t bound, uint32_t quorum = 0, double scale = 0) {
    v1::SwitchModeRequest request;
    request.set_mode(mode);
    request.set_staleness_bound(bound);
    request.set_quorum(quorum);
    request.set_learning_rate_scale(scale);
    return CheckSwitch(config_, request).status();
  }
  v1::JobConfig config_;
};

TEST_F(CheckSwitchTest, AcceptsWhatTheModesAllow) {
  EXPECT_TRUE(Check(v1::SYNC, 0, 2).ok());
  EXPECT_TRUE(Check(v1::SSP, 4, 0, 0.5).ok());
  EXPECT_TRUE(Check(v1::ASYNC, 0).ok());
}

TEST_F(CheckSwitchTest, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(Check(v1::MODE_UNSPECIFIED, 0).message().substr(0, 5), "mode:");
  EXPECT_EQ(Check(v1::SSP, 0).message().substr(0, 16), "staleness_bound:");
  EXPECT_EQ(Check(v1::SSP, -1).message().substr(0, 16), "staleness_bound:");
  EXPECT_EQ(Check(v1::ASYNC, 1).message().substr(0, 16), "staleness_bound:");
  EXPECT_EQ(Check(v1::ASYNC, 0, 1).message().substr(0, 7), "quorum:");
  EXPECT_EQ(Check(v1::SYNC, 0, 4).message().substr(0, 7), "quorum:");
  EXPECT_EQ(Check(v1::SYNC, 0, 0, -1).message().substr(0, 20), "learning_rate_scale:");
  EXPECT_FALSE(Check(v1::SYNC, 0, 0, std::numeric_limits<double>::quiet_NaN()).ok());
}

TEST_F(CheckSwitchTest, StaticDispatchStaysSynchronous) {
  config_.mutable_data()->set_dispatch(v1::DataConfig::STATIC);
  EXPECT_EQ(Check(v1::ASYNC, 0).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Check(v1::SYNC, 0).ok());
}

TEST_F(CheckSwitchTest, LocalSgdIsNotSwitchedToSsp) {
  config_.mutable_consistency()->set_sync_every(4);
  const absl::Status refused = Check(v1::SSP, 3);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "mode: value SSP(3); allowed: SYNC, ASYNC, because consistency.sync_every is 4; start the job with "
            "consistency.sync_every 1 to switch to SSP");
  EXPECT_TRUE(Check(v1::SYNC, 0).ok());
  EXPECT_TRUE(Check(v1::ASYNC, 0).ok());
}

}  // namespace
}  // namespace rubato::coordinator
