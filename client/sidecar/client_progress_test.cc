#include "client/sidecar/client_progress.h"

#include <gtest/gtest.h>

namespace rubato::client {
namespace {

class ClientProgressTest : public ::testing::Test {
 protected:
  // One step: waits for 1 s, computes for 2 s, pushes, and is at its data for 4 s.
  void Step(int64_t step, uint64_t examples) {
    progress_.OnBegin();
    clock_.Advance(absl::Seconds(1));
    progress_.OnBegun(step, 3);
    clock_.Advance(absl::Seconds(2));
    progress_.OnPushed(clock_.Now(), examples);
    progress_.OnStepPushed();
    clock_.Advance(absl::Seconds(4));
  }
  v1::WorkerProgress Described() {
    v1::WorkerProgress described;
    progress_.Describe(&described);
    return described;
  }

  FakeClock clock_;
  ClientProgress progress_{&clock_, nullptr};
};

TEST_F(ClientProgressTest, TheTimeIsWhereTheClientsCallsSay) {
  Step(5, 8);
  Step(6, 8);
  progress_.OnBegin();
  const v1::WorkerProgress described = Described();
  EXPECT_EQ(described.step(), 6);
  EXPECT_EQ(described.generation(), 3u);
  EXPECT_EQ(described.steps_total(), 2);
  EXPECT_EQ(described.pull_wait_seconds_total(), 2);
  EXPECT_EQ(described.compute_seconds_total(), 4);
  EXPECT_EQ(described.data_seconds_total(), 8);
  // The data of the second step is part of it.
  EXPECT_EQ(described.step_seconds_total(), 3 + 7);
  ASSERT_EQ(described.work_seconds_size(), 2);
  EXPECT_EQ(described.work_seconds(0), 2);
  EXPECT_EQ(described.work_seconds(1), 4 + 2);
  ASSERT_EQ(described.work_examples_size(), 2);
  EXPECT_EQ(described.work_examples(1), 8u);
}

TEST_F(ClientProgressTest, ReportedExamplesCountInThePlaceOfPushedOnes) {
  Step(1, 8);
  progress_.OnBegin();
  EXPECT_EQ(Described().examples_total(), 8);
  progress_.OnBegun(2, 3);
  progress_.OnPushed(clock_.Now(), 1);
  progress_.OnReport({.examples = 64, .loss_sum = 5, .correct = 60});
  progress_.OnReport({.examples = 36, .loss_sum = 1, .correct = -1});
  progress_.OnBegin();
  EXPECT_EQ(Described().examples_total(), 108);
  EXPECT_EQ(Described().loss_total(), 6);
  EXPECT_EQ(Described().correct_total(), 60);
}

}  // namespace
}  // namespace rubato::client
