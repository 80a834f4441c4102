#include "worker/device/step_deadline.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rubato::worker {
namespace {

using On = StepDeadline::On;

absl::Time At(int seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(StepDeadlineTest, ExpiresInACallThatDoesNotReturn) {
  StepDeadline deadline(absl::Seconds(10));
  deadline.Begin("step 7");
  deadline.Enter(On::kDevice, "forward", "conv1", At(0));
  EXPECT_FALSE(deadline.Expired(At(10)).has_value());
  EXPECT_EQ(deadline.Expired(At(11)),
            "step 7 has been with the device for 11s, which is longer than training.step_timeout_seconds, 10s; it "
            "waits in \"forward conv1\"");
}

TEST(StepDeadlineTest, AddsUpTheCallsOfAStep) {
  StepDeadline deadline(absl::Seconds(10));
  deadline.Begin("step 0");
  deadline.Enter(On::kDevice, "forward", "a", At(0));
  deadline.Leave(At(6));
  deadline.Enter(On::kDevice, "loss", "", At(100));
  EXPECT_FALSE(deadline.Expired(At(104)).has_value());
  EXPECT_TRUE(deadline.Expired(At(105)).has_value());
}

TEST(StepDeadlineTest, WhatIsBetweenCallsDoesNotCount) {
  StepDeadline deadline(absl::Seconds(10));
  deadline.Begin("step 0");
  deadline.Enter(On::kDevice, "forward", "a", At(0));
  deadline.Leave(At(10));
  EXPECT_FALSE(deadline.Expired(At(1000)).has_value());
}

TEST(StepDeadlineTest, EveryStepHasItsOwnTime) {
  StepDeadline deadline(absl::Seconds(10));
  for (int step = 0; step < 5; ++step) {
    deadline.Begin(absl::StrCat("step ", step));
    deadline.Enter(On::kDevice, "forward", "a", At(10 * step));
    EXPECT_FALSE(deadline.Expired(At(10 * step + 9)).has_value());
    deadline.Leave(At(10 * step + 9));
  }
}

TEST(StepDeadlineTest, BeforeTheFirstStepNamesTheStart) {
  StepDeadline deadline(absl::Seconds(10));
  deadline.Enter(On::kDevice, "open the device", "", At(0));
  EXPECT_EQ(deadline.Expired(At(11)),
            "the start has been with the device for 11s, which is longer than training.step_timeout_seconds, 10s; it "
            "waits in \"open the device\"");
}

TEST(StepDeadlineTest, NamesTheInnermostOfNestedCallsAndCountsTheOutermost) {
  StepDeadline deadline(absl::Seconds(10));
  deadline.Begin("step 0");
  deadline.Enter(On::kDevice, "push", "a", At(0));
  deadline.Enter(On::kDevice, "gradients to the host", "", At(5));
  EXPECT_NE(deadline.Expired(At(11))->find("\"gradients to the host\""), std::string::npos);
  deadline.Leave(At(11));
  EXPECT_NE(deadline.Expired(At(11))->find("\"push a\""), std::string::npos);
}

TEST(StepDeadlineTest, TheReaderOfTheDataHasTheSameTime) {
  StepDeadline deadline(absl::Seconds(10));
  deadline.Begin("step 7");
  deadline.Enter(On::kReader, "next batch", "", At(0));
  EXPECT_EQ(deadline.Expired(At(11)),
            "step 7 has waited for the reader of its data for 11s, which is longer than "
            "training.step_timeout_seconds, 10s; it waits in \"next batch\"");
  deadline.Leave(At(9));
  deadline.Enter(On::kDevice, "loss", "", At(9));
  EXPECT_EQ(deadline.Expired(At(11)),
            "step 7 has been with the reader of its data and the device for 11s, which is longer than "
            "training.step_timeout_seconds, 10s; it waits in \"loss\"");
  deadline.Begin("step 8");
  EXPECT_NE(deadline.Expired(At(20))->find("step 8 has been with the device for"), std::string::npos);
}

}  // namespace
}  // namespace rubato::worker
