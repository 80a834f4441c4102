#include "client/sidecar/arrivals.h"

#include <gtest/gtest.h>

#include <vector>

namespace rubato::client {
namespace {

using Answers = std::vector<std::pair<uint32_t, uint32_t>>;

class ArrivalsTest : public ::testing::Test {
 protected:
  Answers TakeAnswers() { return std::exchange(answers_, {}); }

  Answers answers_;
  Arrivals arrivals_{[this](uint32_t request, uint32_t tensors) { answers_.emplace_back(request, tensors); }};
};

TEST_F(ArrivalsTest, AnswersNowOrWhenTheTensorIsThere) {
  EXPECT_FALSE(arrivals_.used());
  arrivals_.Want(1, 2);
  EXPECT_TRUE(arrivals_.used());
  arrivals_.Arrived(2);
  EXPECT_EQ(TakeAnswers(), Answers{});
  arrivals_.Arrived(4);
  EXPECT_EQ(TakeAnswers(), (Answers{{1, 4}}));
  arrivals_.Want(2, 3);
  EXPECT_EQ(TakeAnswers(), (Answers{{2, 4}}));
  arrivals_.Want(3, 4);
  EXPECT_EQ(TakeAnswers(), Answers{});
}

TEST_F(ArrivalsTest, WhoWaitsNoMoreGetsNoAnswer) {
  arrivals_.Want(1, 0);
  arrivals_.Forget(1);
  EXPECT_EQ(arrivals_.Take(), std::nullopt);
  arrivals_.Want(2, 0);
  arrivals_.Forget(1);
  EXPECT_EQ(arrivals_.Take(), 2u);
  arrivals_.Want(3, 0);
  arrivals_.Want(4, 1);
  arrivals_.Arrived(2);
  EXPECT_EQ(TakeAnswers(), (Answers{{4, 2}}));
}

TEST_F(ArrivalsTest, TheNextStepBeginsWithNone) {
  arrivals_.Arrived(3);
  arrivals_.Want(1, 0);
  EXPECT_EQ(TakeAnswers(), (Answers{{1, 3}}));
  EXPECT_FALSE(arrivals_.TakeVoid());
  arrivals_.Begun();
  EXPECT_EQ(arrivals_.Moved(), 0u);
  arrivals_.Want(2, 0);
  EXPECT_EQ(TakeAnswers(), Answers{});
}

TEST_F(ArrivalsTest, AMoveSaysWhatTheClientMayHaveUsed) {
  // It was told of none: the step may have any weights.
  arrivals_.Arrived(2);
  EXPECT_EQ(arrivals_.Moved(), 0u);
  arrivals_.Want(1, 0);
  EXPECT_EQ(TakeAnswers(), Answers{});
  arrivals_.Arrived(2);
  EXPECT_EQ(TakeAnswers(), (Answers{{1, 2}}));
  EXPECT_EQ(arrivals_.Moved(), 2u);
  // What it was told before the move still counts after the weights are there again.
  arrivals_.Arrived(1);
  EXPECT_EQ(arrivals_.Moved(), 2u);
}

TEST_F(ArrivalsTest, WhatIsVoidIsSaidOnce) {
  arrivals_.Arrived(1);
  arrivals_.Want(1, 0);
  EXPECT_EQ(arrivals_.Moved(), 1u);
  arrivals_.MakeVoid();
  arrivals_.Arrived(3);
  EXPECT_TRUE(arrivals_.TakeVoid());
  // It begins anew: weights are there, and it has used none of them.
  EXPECT_FALSE(arrivals_.TakeVoid());
  EXPECT_EQ(arrivals_.Moved(), 0u);
}

}  // namespace
}  // namespace rubato::client
