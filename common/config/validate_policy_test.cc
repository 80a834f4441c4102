#include <gtest/gtest.h>

#include "common/config/testing/good_job.h"

namespace rubato {
namespace {

TEST(ValidatePolicyTest, ChecksPolicies) {
  const std::string quorum = "consistency.policy=QUORUM";
  const std::string sync_then_async = "consistency.policy=SYNC_THEN_ASYNC";
  EXPECT_EQ(ErrorOf({quorum}), "");
  EXPECT_EQ(ErrorOf({sync_then_async}), "");
  Check({
      {{"consistency.policy_pace.window_steps=10"},
       "consistency.policy_pace: value given; allowed: absent if consistency.policy is SCHEDULE"},
      {{"consistency.quorum_policy.share_min=1"},
       "consistency.quorum_policy: value given; allowed: absent unless consistency.policy is QUORUM"},
      {{quorum, "consistency.sync_then_async.share=1"},
       "consistency.sync_then_async: value given; allowed: absent unless consistency.policy is SYNC_THEN_ASYNC"},
      {{quorum, "consistency.mode=ASYNC"},
       "consistency.mode: value ASYNC; allowed: SYNC if consistency.policy is QUORUM"},
      {{quorum, "consistency.schedule[0]={at_step: 5 mode: ASYNC}"},
       "consistency.schedule: value 1 entries; allowed: none if consistency.policy is QUORUM"},
      {{quorum, "data.dispatch=STATIC"},
       "consistency.policy: value QUORUM; allowed: SCHEDULE if data.dispatch is STATIC"},
      {{quorum, "consistency.policy_pace.window_steps=0"},
       "consistency.policy_pace.window_steps: value 0; allowed: 1 to 2147483647"},
      {{quorum, "consistency.policy_pace.window_seconds=nan"},
       "consistency.policy_pace.window_seconds: value nan; allowed: a number > 0"},
      {{quorum, "consistency.policy_pace.windows_agreeing=0"},
       "consistency.policy_pace.windows_agreeing: value 0; allowed: 1 to 1000"},
      {{quorum, "consistency.policy_pace.windows_of_rest=1001"},
       "consistency.policy_pace.windows_of_rest: value 1001; allowed: 0 to 1000"},
      {{quorum, "consistency.policy_pace.changes_max=0"},
       "consistency.policy_pace.changes_max: value 0; allowed: 1 to 1000"},
      {{quorum, "consistency.quorum_policy.share_min=0"},
       "consistency.quorum_policy.share_min: value 0; allowed: over 0, up to 1"},
      {{quorum, "consistency.quorum_policy.gain_min=0"},
       "consistency.quorum_policy.gain_min: value 0; allowed: a number > 0"},
      {{quorum, "consistency.quorum_policy.noise_scale=0"},
       "consistency.quorum_policy.noise_scale: value 0; allowed: a number > 0, or absent"},
      {{sync_then_async, "consistency.sync_then_async.share=1.5"},
       "consistency.sync_then_async.share: value 1.5; allowed: 0 to 1"},
      {{sync_then_async, "consistency.sync_then_async.cost_max=0"},
       "consistency.sync_then_async.cost_max: value 0; allowed: a number > 0"},
      {{sync_then_async, "consistency.sync_then_async.then=SYNC"},
       "consistency.sync_then_async.then: value 1; allowed: ASYNC, SSP"},
      {{sync_then_async, "consistency.sync_then_async.then=SSP"},
       "consistency.sync_then_async.staleness_bound: value 0; allowed: 1 to 1048576 if `then` is SSP"},
      {{sync_then_async, "consistency.sync_then_async.staleness_bound=2"},
       "consistency.sync_then_async.staleness_bound: value 2; allowed: absent unless `then` is SSP"},
      {{sync_then_async, "consistency.sync_every=4", "consistency.sync_then_async.then=SSP",
        "consistency.sync_then_async.staleness_bound=2"},
       "consistency.sync_then_async.then: value SSP; allowed: ASYNC if consistency.sync_every is 4"},
  });
}

TEST(ValidatePolicyTest, BalanceHasTheBatchesToItself) {
  const std::string balance = "consistency.policy=BALANCE";
  EXPECT_EQ(ErrorOf({balance}), "");
  Check({
      {{"consistency.balance.batch_max=2"},
       "consistency.balance: value given; allowed: absent unless consistency.policy is BALANCE"},
      {{balance, "consistency.balance.imbalance_min=0"},
       "consistency.balance.imbalance_min: value 0; allowed: a number > 0"},
      {{balance, "consistency.balance.batch_max=1"},
       "consistency.balance.batch_max: value 1; allowed: over 1, up to 64"},
      {{balance, "consistency.balance.batch_max=3", "training.batch_size=524288"},
       "consistency.balance.batch_max: value 3; allowed: up to 1048576 examples, if training.batch_size is 524288"},
      {{balance, "consistency.sync_every=4"},
       "consistency.sync_every: value 4; allowed: 1 if consistency.policy is BALANCE"},
      {{balance, "consistency.quorum=1"}, "consistency.quorum: value 1; allowed: 0 if consistency.policy is BALANCE"},
      {{balance, "consistency.mode=ASYNC"},
       "consistency.mode: value ASYNC; allowed: SYNC if consistency.policy is BALANCE"},
      {{balance, "data.dispatch=STATIC"},
       "consistency.policy: value BALANCE; allowed: SCHEDULE if data.dispatch is STATIC"},
  });
}

TEST(ValidatePolicyTest, ChecksStraggler) {
  const std::string straggler = "consistency.policy=STRAGGLER";
  EXPECT_EQ(ErrorOf({straggler}), "");
  Check({
      {{straggler, "consistency.straggler.deviations=0"},
       "consistency.straggler.deviations: value 0; allowed: a number > 0"},
      {{straggler, "consistency.straggler.gain_min=-1"},
       "consistency.straggler.gain_min: value -1; allowed: a number > 0"},
      {{straggler, "consistency.straggler.share_min=1.5"},
       "consistency.straggler.share_min: value 1.5; allowed: over 0, up to 1"},
      {{straggler, "consistency.quorum=1"},
       "consistency.quorum: value 1; allowed: 0 if consistency.policy is STRAGGLER"},
  });
}

TEST(ValidatePolicyTest, ChecksDssp) {
  const std::string dssp = "consistency.policy=DSSP", ssp = "consistency.mode=SSP";
  EXPECT_EQ(ErrorOf({dssp, ssp, "consistency.staleness_bound=3"}), "");
  Check({
      {{dssp}, "consistency.mode: value SYNC; allowed: SSP if consistency.policy is DSSP"},
      {{dssp, ssp, "consistency.staleness_bound=16"},
       "consistency.staleness_bound: value 16; allowed: consistency.dssp.bound_min to bound_max if "
       "consistency.policy is DSSP"},
      {{dssp, ssp, "consistency.staleness_bound=3", "consistency.dssp.bound_max=2"},
       "consistency.dssp.bound_max: value 2; allowed: 3 to 1048576\n"
       "consistency.staleness_bound: value 3; allowed: consistency.dssp.bound_min to bound_max if "
       "consistency.policy is DSSP"},
      {{dssp, ssp, "consistency.staleness_bound=3", "consistency.dssp.gain_min=0"},
       "consistency.dssp.gain_min: value 0; allowed: a number > 0"},
  });
}

TEST(ValidatePolicyTest, ChecksStalenessBudget) {
  const std::string policy = "consistency.policy=STALENESS_BUDGET", budget = "consistency.staleness_budget.budget=4";
  for (const char* mode : {"SYNC", "ASYNC"}) {
    EXPECT_EQ(ErrorOf({policy, budget, std::string("consistency.mode=") + mode}), "");
  }
  Check({
      {{policy}, "consistency.staleness_budget.budget: value 0; allowed: a number > 0"},
      {{policy, budget, "consistency.staleness_budget.room=1"},
       "consistency.staleness_budget.room: value 1; allowed: over 0, under 1"},
      {{policy, budget, "consistency.staleness_budget.bound_max=0"},
       "consistency.staleness_budget.bound_max: value 0; allowed: 1 to 1048576"},
      {{policy, budget, "consistency.mode=SSP", "consistency.staleness_bound=17"},
       "consistency.staleness_bound: value 17; allowed: up to consistency.staleness_budget.bound_max if "
       "consistency.policy is STALENESS_BUDGET"},
      {{policy, budget, "consistency.sync_every=2"},
       "consistency.sync_every: value 2; allowed: 1 if consistency.policy is STALENESS_BUDGET"},
      {{policy, budget, "consistency.quorum=1"},
       "consistency.quorum: value 1; allowed: 0 if consistency.policy is STALENESS_BUDGET"},
  });
}

TEST(ValidatePolicyTest, ChecksPostLocal) {
  const std::string policy = "consistency.policy=POST_LOCAL";
  EXPECT_EQ(ErrorOf({policy}), "");
  EXPECT_EQ(ErrorOf({policy, "consistency.sync_every=2"}), "");
  Check({
      {{policy, "consistency.mode=ASYNC"},
       "consistency.mode: value ASYNC; allowed: SYNC if consistency.policy is POST_LOCAL"},
      {{policy, "consistency.post_local.sync_every=0"},
       "consistency.post_local.sync_every: value 0; allowed: 1 to 1048576"},
      {{policy, "consistency.post_local.sync_every=4", "consistency.sync_every=4"},
       "consistency.post_local.sync_every: value 4; allowed: more than consistency.sync_every, 4"},
      {{policy, "consistency.post_local.rate_factor=1"},
       "consistency.post_local.rate_factor: value 1; allowed: over 0, under 1"},
      {{policy, "consistency.post_local.gain_min=0"},
       "consistency.post_local.gain_min: value 0; allowed: a number > 0"},
      {{policy, "consistency.post_local.cost_max=-1"},
       "consistency.post_local.cost_max: value -1; allowed: a number > 0"},
      {{policy, "consistency.quorum=1"}, "consistency.quorum: value 1; allowed: 0 if consistency.policy is POST_LOCAL"},
      {{policy, "training.gpus=2"}, "training.gpus: value 2; allowed: 1 if consistency.post_local.sync_every is 16"},
      {{"consistency.post_local.sync_every=4"},
       "consistency.post_local: value given; allowed: absent unless consistency.policy is POST_LOCAL"},
  });
}

TEST(ValidatePolicyTest, ChecksAdaComm) {
  const std::string policy = "consistency.policy=ADACOMM";
  const std::string begin = "consistency.sync_every=16";
  EXPECT_EQ(ErrorOf({policy, begin}), "");
  Check({
      {{policy}, "consistency.sync_every: value 1; allowed: 2 or more if consistency.policy is ADACOMM"},
      {{policy, begin, "consistency.mode=ASYNC"},
       "consistency.mode: value ASYNC; allowed: SYNC if consistency.policy is ADACOMM"},
      {{policy, begin, "consistency.adacomm.sync_every_min=16"},
       "consistency.adacomm.sync_every_min: value 16; allowed: 1 to 15"},
      {{policy, begin, "consistency.adacomm.interval_windows=0"},
       "consistency.adacomm.interval_windows: value 0; allowed: 1 to 1000"},
      {{policy, begin, "consistency.adacomm.decay=1"}, "consistency.adacomm.decay: value 1; allowed: over 0, under 1"},
      {{policy, begin, "consistency.adacomm.gain_min=0"},
       "consistency.adacomm.gain_min: value 0; allowed: a number > 0"},
      {{policy, begin, "consistency.quorum=1"},
       "consistency.quorum: value 1; allowed: 0 if consistency.policy is ADACOMM"},
      {{"consistency.adacomm.decay=0.5"},
       "consistency.adacomm: value given; allowed: absent unless consistency.policy is ADACOMM"},
  });
}

// As in a client's job, whose clients batch as they like.
TEST(ValidatePolicyTest, ANoiseScaleNeedsTheSizeOfABatch) {
  EXPECT_EQ(ErrorOf({"consistency.policy=QUORUM", "training.batch_size=0", "consistency.quorum_policy.noise_scale=9"}),
            "consistency.quorum_policy.noise_scale: value 9; allowed: absent if training.batch_size is\n"
            "training.batch_size: value 0; allowed: 1 to 1048576");
}

}  // namespace
}  // namespace rubato
