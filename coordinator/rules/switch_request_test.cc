#include "coordinator/rules/switch_request.h"

#include <gtest/gtest.h>

#include <limits>

namespace rubato::coordinator {
namespace {

class CheckSwitchTest : public testing::Test {
 protected:
  CheckSwitchTest() { config_.mutable_cluster()->set_workers(3); }
  absl::Status Check(v1::Mode mode, int64_t bound, uint32_t quorum = 0, double scale = 0, uint32_t sync_every = 0) {
    v1::SwitchModeRequest request;
    request.set_mode(mode);
    request.set_staleness_bound(bound);
    request.set_quorum(quorum);
    request.set_learning_rate_scale(scale);
    request.set_sync_every(sync_every);
    const absl::StatusOr<PlanChange> change = CheckSwitch(config_, request);
    if (change.ok()) learning_rate_scale_ = change->learning_rate_scale;
    if (change.ok()) sync_every_ = change->sync_every;
    return change.status();
  }
  v1::JobConfig config_;
  // Of the last change that was accepted.
  double learning_rate_scale_ = 0;
  uint32_t sync_every_ = 0;
};

TEST_F(CheckSwitchTest, AcceptsWhatTheModesAllow) {
  EXPECT_TRUE(Check(v1::SYNC, 0, 2).ok());
  EXPECT_TRUE(Check(v1::SSP, 4, 0, 0.5).ok());
  EXPECT_TRUE(Check(v1::ASYNC, 0).ok());
}

TEST_F(CheckSwitchTest, TheLearningRateGoesWithTheContributionsUnlessTheRequestSaysOtherwise) {
  config_.mutable_cluster()->set_workers(4);
  config_.mutable_consistency()->set_mode(v1::SYNC);
  EXPECT_TRUE(Check(v1::ASYNC, 0).ok());
  EXPECT_EQ(learning_rate_scale_, 0.25);
  EXPECT_TRUE(Check(v1::SYNC, 0, 2).ok());
  EXPECT_EQ(learning_rate_scale_, 0.5);
  EXPECT_TRUE(Check(v1::ASYNC, 0, 0, 1).ok());
  EXPECT_EQ(learning_rate_scale_, 1);
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
  EXPECT_EQ(
      refused.message(),
      "mode: value SSP(3); allowed: SYNC, ASYNC, because consistency.sync_every is 4; start the job with 1 to switch "
      "to SSP");
  EXPECT_TRUE(Check(v1::SYNC, 0).ok());
  EXPECT_TRUE(Check(v1::ASYNC, 0).ok());
}

TEST_F(CheckSwitchTest, HowOftenWorkersExchangeIsLocalSgdsToChange) {
  EXPECT_EQ(Check(v1::SYNC, 0, 0, 0, 1).message(),
            "sync_every: value 1; allowed: 0, because that is the most that the job's config has");
  config_.mutable_consistency()->set_sync_every(4);
  EXPECT_TRUE(Check(v1::ASYNC, 0, 0, 0, 3).ok());
  EXPECT_EQ(sync_every_, 3u);
  EXPECT_TRUE(Check(v1::ASYNC, 0).ok());
  EXPECT_EQ(sync_every_, 0u);
  EXPECT_EQ(Check(v1::SYNC, 0, 0, 0, 5).message(),
            "sync_every: value 5; allowed: 0 to 4, because that is the most that the job's config has");
  config_.mutable_data()->set_dispatch(v1::DataConfig::STATIC);
  EXPECT_EQ(Check(v1::SYNC, 0, 0, 0, 3).message(), "sync_every: value 3; allowed: 0, because data.dispatch is STATIC");
}

TEST_F(CheckSwitchTest, MomentumIsForOptimizersThatHaveOne) {
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  request.set_momentum(0.5);
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  EXPECT_EQ(CheckSwitch(config_, request).status().message(),
            "momentum: value 0.5; allowed: absent, because optimizer.algorithm is ADAM");
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::NESTEROV);
  ASSERT_TRUE(CheckSwitch(config_, request).ok());
  EXPECT_EQ(CheckSwitch(config_, request)->momentum, 0.5);
  request.set_momentum(1);
  EXPECT_EQ(CheckSwitch(config_, request).status().message(), "momentum: value 1; allowed: 0 or more, less than 1");
  request.set_momentum(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(CheckSwitch(config_, request).ok());
  request.clear_momentum();
  EXPECT_EQ(CheckSwitch(config_, request)->momentum, std::nullopt);
  request.set_momentum(0.5);
  config_.mutable_model()->mutable_manifest();
  EXPECT_EQ(CheckSwitch(config_, request).status().message(),
            "momentum: value 0.5; allowed: absent, because the job's clients say it with what they push");
}

TEST_F(CheckSwitchTest, CompressionIsForJobsThatHaveACodec) {
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  EXPECT_EQ(CheckSwitch(config_, request)->compress, std::nullopt);
  request.set_compress(false);
  EXPECT_EQ(CheckSwitch(config_, request).status().message(),
            "compress: value false; allowed: absent, because compression.push encodes nothing");
  config_.mutable_compression()->add_tensors()->mutable_push()->set_codec(v1::INT8);
  ASSERT_TRUE(CheckSwitch(config_, request).ok());
  EXPECT_EQ(CheckSwitch(config_, request)->compress, false);
}

TEST_F(CheckSwitchTest, AMeanStaysSynchronous) {
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::MEAN);
  EXPECT_EQ(Check(v1::ASYNC, 0).message(), "mode: value ASYNC; allowed: SYNC, because optimizer.algorithm is MEAN");
  EXPECT_EQ(Check(v1::SSP, 2).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Check(v1::SYNC, 0, 2).ok());
}

TEST(SwitchTextTest, SaysWhatWasAskedForAndNoMore) {
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  EXPECT_EQ(SwitchText(request), "switch to async");
  request.set_mode(v1::SSP);
  request.set_staleness_bound(2);
  request.set_learning_rate_scale(0.5);
  EXPECT_EQ(SwitchText(request), "switch to ssp:2, learning rate times 0.5");
  request.Clear();
  request.set_mode(v1::SYNC);
  request.set_quorum(3);
  request.set_sync_every(4);
  request.set_momentum(0);
  request.set_compress(false);
  EXPECT_EQ(SwitchText(request),
            "switch to sync, quorum 3, an exchange every 4 batches, momentum 0, gradients as they are");
}

}  // namespace
}  // namespace rubato::coordinator
