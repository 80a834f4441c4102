#include "client/library/step_state.h"

#include <gtest/gtest.h>

namespace rubato::client {
namespace {

class StepStateTest : public ::testing::Test {
 protected:
  StepState steps_{{"weight", "bias"}};
};

TEST_F(StepStateTest, EachTensorIsPushedOnceAStep) {
  EXPECT_EQ(steps_.CheckBegin(), "");
  EXPECT_EQ(steps_.Push(0, 8), "tensor weight is pushed, and no step was begun");
  steps_.Begin({.step = 7});
  EXPECT_EQ(steps_.Push(1, 8), "");
  EXPECT_EQ(steps_.Push(1, 8), "tensor bias was pushed in step 7 already");
  EXPECT_EQ(steps_.CheckBegin(),
            "step 7: tensor weight was not pushed; rubato_push, rubato_push_absent or rubato_skip");
  EXPECT_EQ(steps_.Push(2, 8), "tensor 2: the model has 2");
  EXPECT_EQ(steps_.PushAbsent(0), "");
  EXPECT_EQ(steps_.CheckBegin(), "");
  steps_.Begin({.step = 8});
  EXPECT_EQ(steps_.Push(1, 8), "");
}

TEST_F(StepStateTest, AStepHasOneNumberOfExamples) {
  steps_.Begin({.step = 1});
  EXPECT_EQ(steps_.Push(0, 0), "tensor weight is pushed with 0 examples; 1 or more, or rubato_push_absent");
  EXPECT_EQ(steps_.Push(0, 8), "");
  EXPECT_EQ(steps_.Push(1, 9),
            "tensor bias is pushed with 9 examples, and others of step 1 with 8; a step has one number of examples");
  EXPECT_EQ(steps_.Push(1, 8), "");
}

TEST_F(StepStateTest, SkippingCompletesTheStep) {
  EXPECT_EQ(steps_.Skip(), "no step was begun");
  steps_.Begin({.step = 1});
  EXPECT_EQ(steps_.Push(0, 8), "");
  EXPECT_EQ(steps_.Skip(), "");
  EXPECT_TRUE(steps_.complete());
}

TEST_F(StepStateTest, WeightsAreAwaitedBetweenSteps) {
  EXPECT_EQ(steps_.CheckAwait(1), "");
  EXPECT_EQ(steps_.CheckAwait(2), "tensor 2: the model has 2");
  steps_.Begin({.step = 1});
  EXPECT_EQ(steps_.Push(0, 8), "");
  EXPECT_EQ(steps_.CheckAwait(0), "step 1: tensor bias was not pushed; rubato_push, rubato_push_absent or rubato_skip");
  EXPECT_EQ(steps_.Push(1, 8), "");
  EXPECT_EQ(steps_.CheckAwait(0), "");
}

TEST_F(StepStateTest, AnEpochIsSaidBeforeTheFirstPush) {
  EXPECT_EQ(steps_.CheckEpoch(), "rubato_set_epoch: no step was begun");
  steps_.Begin({.step = 1});
  EXPECT_EQ(steps_.CheckEpoch(), "");
  EXPECT_EQ(steps_.Push(0, 8), "");
  EXPECT_EQ(steps_.CheckEpoch(), "rubato_set_epoch: a tensor of step 1 was pushed already");
  // Of the step to come.
  EXPECT_EQ(steps_.Push(1, 8), "");
  EXPECT_EQ(steps_.CheckEpoch(), "");
}

TEST_F(StepStateTest, SlicesOfALeaseFollowEachOther) {
  steps_.AddLease({.shard = 5, .begin = 100, .end = 120});
  EXPECT_EQ(steps_.SetSlice({.shard = 5, .begin = 100, .end = 110}), "rubato_set_slice: no step was begun");
  steps_.Begin({.step = 1});
  EXPECT_EQ(steps_.SetSlice({.shard = 6, .begin = 0, .end = 10}),
            "[0, 10) of shard 6: the shard is not leased to this worker");
  EXPECT_EQ(steps_.SetSlice({.shard = 5, .begin = 101, .end = 110}),
            "[101, 110) of shard 5: the next examples of it are in [100, 120)");
  EXPECT_EQ(steps_.SetSlice({.shard = 5, .begin = 100, .end = 110}), "");
  EXPECT_EQ(steps_.SetSlice({.shard = 5, .begin = 110, .end = 120}),
            "[110, 120) of shard 5: step 1 has a slice already");
  EXPECT_EQ(steps_.Push(0, 10), "");
  EXPECT_EQ(steps_.SetSlice({.shard = 5, .begin = 110, .end = 120}),
            "rubato_set_slice: a tensor of step 1 was pushed already");
  steps_.Begin({.step = 2});
  EXPECT_EQ(steps_.SetSlice({.shard = 5, .begin = 110, .end = 120}), "");
}

TEST_F(StepStateTest, LeasesFromBeforeARollbackAreVoid) {
  steps_.Begin({.step = 9});
  steps_.AddLease({.shard = 5, .begin = 0, .end = 20});
  steps_.Begin({.step = 3, .rollbacks = 1});
  EXPECT_EQ(steps_.SetSlice({.shard = 5, .begin = 0, .end = 20}),
            "[0, 20) of shard 5: the shard is not leased to this worker");
}

}  // namespace
}  // namespace rubato::client
