#include <gtest/gtest.h>

#include "common/config/testing/good_job.h"

namespace rubato {
namespace {

TEST(ValidateConsistencyTest, ChecksConsistency) {
  Check({
      {{"consistency.mode="}, "consistency.mode: value MODE_UNSPECIFIED; allowed: SYNC, SSP, ASYNC"},
      {{"consistency.mode=7"}, "consistency.mode: value 7; allowed: SYNC, SSP, ASYNC"},
      {{"consistency.mode=SSP"}, "consistency.staleness_bound: value 0; allowed: 1 to 1048576 if the mode is SSP"},
      {{"consistency.mode=SSP", "consistency.staleness_bound=-1"},
       "consistency.staleness_bound: value -1; allowed: 1 to 1048576 if the mode is SSP"},
      {{"consistency.staleness_bound=2"},
       "consistency.staleness_bound: value 2; allowed: absent unless the mode is SSP"},
      {{"consistency.quorum=3"}, "consistency.quorum: value 3; allowed: 0 to cluster.workers, 2"},
      {{"consistency.quorum=1", "consistency.mode=ASYNC"},
       "consistency.quorum: value 1; allowed: absent unless the mode is SYNC; a scheduled switch to SYNC has a quorum "
       "of its own"},
      {{"consistency.schedule[0]={at_step: 5 mode: SYNC quorum: 3}"},
       "consistency.schedule[0].quorum: value 3; allowed: 0 to cluster.workers, 2"},
      {{"consistency.schedule[0]={at_step: 5 mode: ASYNC quorum: 1}"},
       "consistency.schedule[0].quorum: value 1; allowed: absent unless the mode is SYNC; a scheduled switch to SYNC "
       "has a quorum of its own"},
      {{"consistency.schedule[0]={at_step: 5 mode: SYNC quorum: 1}", "data.dispatch=STATIC"},
       "consistency.schedule[0].quorum: value 1; allowed: absent if data.dispatch is STATIC"},
      {{"consistency.policy=10"},
       "consistency.policy: value 10; allowed: SCHEDULE, QUORUM, SYNC_THEN_ASYNC, BALANCE, "
       "STRAGGLER, DSSP, STALENESS_BUDGET, "
       "POST_LOCAL, ADACOMM"},
      {{"consistency.quorum=1", "data.dispatch=STATIC"},
       "consistency.quorum: value 1; allowed: absent if data.dispatch is STATIC"},
      {{"consistency.mode=ASYNC", "data.dispatch=STATIC"},
       "consistency.mode: value ASYNC; allowed: SYNC if data.dispatch is STATIC"},
      {{"consistency.schedule[0]={at_step: 5 mode: ASYNC}", "data.dispatch=STATIC"},
       "consistency.schedule[0].mode: value ASYNC; allowed: SYNC if data.dispatch is STATIC"},
      {{"consistency.schedule[0].mode=ASYNC"},
       "consistency.schedule[0]: value without a point; allowed: exactly one of at_step, at_epoch, at_seconds"},
      {{"consistency.schedule[0]={at_step: -5 mode: ASYNC}"},
       "consistency.schedule[0].at_step: value -5; allowed: 1 or more"},
      {{"consistency.schedule[0]={at_epoch: inf mode: ASYNC}"},
       "consistency.schedule[0].at_epoch: value inf; allowed: a number > 0"},
      {{"consistency.schedule[0]={at_seconds: 0 mode: ASYNC}"},
       "consistency.schedule[0].at_seconds: value 0; allowed: a number > 0"},
      {{"consistency.schedule[0]={at_step: 5 mode: SSP}"},
       "consistency.schedule[0].staleness_bound: value 0; allowed: 1 to 1048576 if the mode is SSP"},
      {{"consistency.schedule[0]={at_step: 5 mode: ASYNC learning_rate_scale: 0}"},
       "consistency.schedule[0].learning_rate_scale: value 0; allowed: a number > 0"},
      {{"consistency.schedule[0]={at_step: 5 mode: ASYNC}", "consistency.schedule[1]={at_step: 5 mode: SYNC}"},
       "consistency.schedule[1]: value 5; allowed: a point that no earlier entry of the schedule has"},
      {{"consistency.on_non_finite=9"}, "consistency.on_non_finite: value 9; allowed: SKIP_STEP, STOP_JOB"},
  });
}

TEST(ValidateConsistencyTest, ChecksLocalSgd) {
  Check({
      {{"consistency.sync_every=0"}, "consistency.sync_every: value 0; allowed: 1 to 1048576"},
      {{"consistency.sync_every=1048577"}, "consistency.sync_every: value 1048577; allowed: 1 to 1048576"},
      {{"consistency.sync_every=4096", "training.batch_size=1048576"},
       "consistency.sync_every: value 4096; allowed: 1 to 2047 if training.batch_size is 1048576 (at most 2^31-1 "
       "examples a step)"},
      {{"consistency.sync_every=4", "consistency.mode=SSP", "consistency.staleness_bound=2"},
       "consistency.mode: value SSP; allowed: SYNC, ASYNC if consistency.sync_every is 4"},
      {{"consistency.sync_every=4", "consistency.schedule[0]={at_step: 5 mode: SSP staleness_bound: 2}"},
       "consistency.schedule[0].mode: value SSP; allowed: SYNC, ASYNC if consistency.sync_every is 4"},
  });
  Check({
      {{"consistency.schedule[0]={at_step: 5 mode: SYNC sync_every: 0}"},
       "consistency.schedule[0].sync_every: value 0; allowed: 1 to 1048576"},
      {{"consistency.schedule[0]={at_step: 5 mode: SYNC sync_every: 4}", "consistency.mode=SSP",
        "consistency.staleness_bound=2"},
       "consistency.mode: value SSP; allowed: SYNC, ASYNC if consistency.schedule[0].sync_every is 4"},
      {{"consistency.schedule[0]={at_step: 5 mode: SYNC sync_every: 4}", "data.dispatch=STATIC"},
       "consistency.schedule[0].sync_every: value 4; allowed: absent if data.dispatch is STATIC"},
  });
  EXPECT_EQ(ErrorOf({"consistency.schedule[0]={at_step: 5 mode: SYNC sync_every: 4}"}), "");
  Check({
      {{"consistency.schedule[0]={at_step: 5 mode: ASYNC momentum: 0.5}"},
       "consistency.schedule[0].momentum: value 0.5; allowed: absent, because optimizer.algorithm is SGD"},
      {{"consistency.schedule[0]={at_step: 5 mode: ASYNC momentum: 1}", "optimizer.algorithm=NESTEROV"},
       "consistency.schedule[0].momentum: value 1; allowed: 0 or more, less than 1"},
  });
  EXPECT_EQ(ErrorOf({"consistency.schedule[0]={at_step: 5 mode: ASYNC momentum: 0}", "optimizer.algorithm=MOMENTUM"}),
            "");
  EXPECT_EQ(ErrorOf({"consistency.sync_every=4", "consistency.mode=ASYNC"}), "");
  EXPECT_EQ(ErrorOf({"consistency.sync_every=4", "data.dispatch=STATIC"}), "");
}

TEST(ValidateConsistencyTest, ChecksCompensation) {
  constexpr char kAsync[] = "consistency.mode=ASYNC";
  Check({
      {{"consistency.compensation={}"},
       "consistency.compensation: value without a method; allowed: exactly one of staleness_aware, ringmaster, "
       "dc_asgd, "
       "gap_aware, delayed_nesterov"},
      {{"consistency.compensation={staleness_aware {}}", "data.dispatch=STATIC"},
       "consistency.compensation: value given; allowed: absent if data.dispatch is STATIC: in SYNC no gradient is "
       "stale"},
      {{"consistency.compensation={ringmaster {}}", kAsync},
       "consistency.compensation.ringmaster.threshold: value 0; allowed: 1 to 1048576"},
      {{"consistency.compensation={ringmaster {threshold: 1048577}}", kAsync},
       "consistency.compensation.ringmaster.threshold: value 1048577; allowed: 1 to 1048576"},
      {{"consistency.compensation={dc_asgd {lambda: 0}}", kAsync},
       "consistency.compensation.dc_asgd.lambda: value 0; allowed: a number > 0"},
      {{"consistency.compensation={dc_asgd {lambda: inf}}", kAsync},
       "consistency.compensation.dc_asgd.lambda: value inf; allowed: a number > 0"},
      {{"consistency.compensation={dc_asgd {}}", kAsync, "consistency.sync_every=2"},
       "consistency.compensation: value dc_asgd; allowed: another one if consistency.sync_every is 2: "
       "moves are no gradients"},
      {{"consistency.compensation={gap_aware {}}", kAsync, "optimizer.algorithm=ADAMW"},
       "consistency.compensation: value gap_aware; allowed: another one if optimizer.algorithm is ADAMW, whose "
       "weight decay is no part of the gradient"},
      {{"consistency.compensation={delayed_nesterov {}}", kAsync},
       "consistency.compensation.delayed_nesterov.period: value 0; allowed: 1 to 1048576"},
      {{"consistency.compensation={delayed_nesterov {period: 2 momentum: 1}}", kAsync},
       "consistency.compensation.delayed_nesterov.momentum: value 1; allowed: 0 or more, less than 1"},
      {{"consistency.compensation={delayed_nesterov {period: 2 learning_rate: 0.5}}", kAsync},
       "consistency.compensation.delayed_nesterov.learning_rate: value 0.5; allowed: absent unless "
       "consistency.sync_every is more than 1; the rate is optimizer.learning_rate"},
      {{"consistency.compensation={delayed_nesterov {period: 2 learning_rate: -1}}", kAsync,
        "consistency.sync_every=2"},
       "consistency.compensation.delayed_nesterov.learning_rate: value -1; allowed: a number > 0"},
      {{"consistency.compensation={delayed_nesterov {period: 2}}", kAsync, "optimizer.algorithm=MOMENTUM"},
       "optimizer.algorithm: value MOMENTUM; allowed: SGD if consistency.compensation is delayed_nesterov, which "
       "has "
       "a momentum of its own"},
  });
  for (const char* good : {"staleness_aware {}", "ringmaster {threshold: 1}", "dc_asgd {}", "dc_asgd {adaptive: true}",
                           "gap_aware {}", "delayed_nesterov {period: 2}"}) {
    const std::string compensation = std::string("consistency.compensation={") + good + "}";
    EXPECT_EQ(ErrorOf({compensation, kAsync}), "");
    EXPECT_EQ(ErrorOf({compensation}), "");  // An operator may switch.
  }
  EXPECT_EQ(ErrorOf({"consistency.compensation={delayed_nesterov {period: 2}}", "consistency.sync_every=2",
                     "optimizer.algorithm=ADAM", kAsync}),
            "");
}

}  // namespace
}  // namespace rubato
