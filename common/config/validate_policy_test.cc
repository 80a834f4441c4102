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
       "consistency.policy_pace: value given; allowed: absent unless consistency.policy is QUORUM or SYNC_THEN_ASYNC"},
      {{"consistency.quorum_policy.share_min=1"},
       "consistency.quorum_policy: value given; allowed: absent unless consistency.policy is QUORUM"},
      {{quorum, "consistency.sync_then_async.share=1"},
       "consistency.sync_then_async: value given; allowed: absent unless consistency.policy is SYNC_THEN_ASYNC"},
      {{quorum, "consistency.mode=ASYNC"},
       "consistency.mode: value ASYNC; allowed: SYNC where consistency.policy is QUORUM"},
      {{quorum, "consistency.schedule[0]={at_step: 5 mode: ASYNC}"},
       "consistency.schedule: value 1 entries; allowed: none where consistency.policy is QUORUM"},
      {{quorum, "data.dispatch=STATIC"},
       "consistency.policy: value QUORUM; allowed: SCHEDULE where data.dispatch is STATIC"},
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
       "consistency.sync_then_async.staleness_bound: value 0; allowed: 1 to 1048576 where `then` is SSP"},
      {{sync_then_async, "consistency.sync_then_async.staleness_bound=2"},
       "consistency.sync_then_async.staleness_bound: value 2; allowed: absent unless `then` is SSP"},
      {{sync_then_async, "consistency.sync_every=4", "consistency.sync_then_async.then=SSP",
        "consistency.sync_then_async.staleness_bound=2"},
       "consistency.sync_then_async.then: value SSP; allowed: ASYNC where consistency.sync_every is 4"},
  });
}

// As in a client's job, whose clients batch as they like.
TEST(ValidatePolicyTest, ANoiseScaleNeedsTheSizeOfABatch) {
  EXPECT_EQ(ErrorOf({"consistency.policy=QUORUM", "training.batch_size=0", "consistency.quorum_policy.noise_scale=9"}),
            "consistency.quorum_policy.noise_scale: value 9; allowed: absent where training.batch_size is\n"
            "training.batch_size: value 0; allowed: 1 to 1048576");
}

}  // namespace
}  // namespace rubato
