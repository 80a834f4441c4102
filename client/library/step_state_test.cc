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

TEST(StepStateOfTablesTest, EachTableIsPushedOnceAStep) {
  StepState steps({"weight"}, {"users", "items"});
  EXPECT_EQ(steps.CheckAskRows(0), "table users is asked for rows of the next step, and no step was begun");
  EXPECT_EQ(steps.PushRows(0, 8), "table users is pushed, and no step was begun");
  steps.Begin({.step = 7});
  EXPECT_EQ(steps.Push(1, 8), "tensor 1: the model has 1");
  EXPECT_EQ(steps.PushRows(2, 8), "table 2: the model has 2");
  EXPECT_EQ(steps.CheckAskRows(2), "table 2: the model has 2");
  EXPECT_EQ(steps.Push(0, 8), "");
  EXPECT_EQ(steps.PushRows(1, 9),
            "table items is pushed with 9 examples, and others of step 7 with 8; a step has one number of examples");
  EXPECT_EQ(steps.PushRows(1, 0), "table items is pushed with 0 examples; 1 or more, or rubato_skip");
  EXPECT_EQ(steps.CheckAskRows(1), "");
  EXPECT_EQ(steps.PushRows(1, 8), "");
  EXPECT_EQ(steps.PushRows(1, 8), "table items was pushed in step 7 already");
  EXPECT_EQ(steps.CheckAskRows(1),
            "table items is asked for rows of the next step, and was pushed in step 7 already: they are asked for "
            "before that");
  EXPECT_EQ(steps.CheckBegin(), "step 7: table users was not pushed; rubato_push_rows or rubato_skip");
  EXPECT_EQ(steps.Skip(), "");
  EXPECT_EQ(steps.CheckBegin(), "");
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
  EXPECT_EQ(steps_.CheckEpoch(), "rubato_set_epoch: a part of step 1 was pushed already");
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
            "rubato_set_slice: a part of step 1 was pushed already");
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
