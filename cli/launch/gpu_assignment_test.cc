#include "cli/launch/gpu_assignment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;

// Of the first tasks.
std::vector<std::optional<uint32_t>> Assigned(const v1::TrainingConfig& training, uint32_t gpus) {
  std::vector<std::optional<uint32_t>> assigned;
  for (uint32_t turn = 0; turn < 4; ++turn) assigned.push_back(AssignedGpu(training, gpus, turn));
  return assigned;
}

TEST(GpuAssignmentTest, TasksTakeAGpuEachInTurn) {
  EXPECT_THAT(Assigned({}, 3), ElementsAre(0, 1, 2, 0));
  v1::TrainingConfig training;
  training.set_device(v1::TrainingConfig::CUDA);
  training.set_gpus(1);
  EXPECT_THAT(Assigned(training, 2), ElementsAre(0, 1, 0, 1));
}

TEST(GpuAssignmentTest, GroupsOfGpusDoNotOverlap) {
  v1::TrainingConfig training;
  training.set_gpus(2);
  EXPECT_THAT(Assigned(training, 4), ElementsAre(0, 2, 0, 2));
  EXPECT_THAT(Assigned(training, 3), ElementsAre(0, 0, 0, 0));
  training.set_gpus(8);
  EXPECT_THAT(Assigned(training, 4), ElementsAre(0, 0, 0, 0));
}

TEST(GpuAssignmentTest, TheConfigHoldsWhereItSaysWhichGpu) {
  v1::TrainingConfig training;
  training.set_device_index(0);
  EXPECT_EQ(AssignedGpu(training, 4, 1), std::nullopt);
  training.clear_device_index();
  EXPECT_EQ(AssignedGpu(training, 4, 1), 1);
  training.set_device(v1::TrainingConfig::CPU);
  EXPECT_EQ(AssignedGpu(training, 4, 1), std::nullopt);
}

TEST(GpuAssignmentTest, ThereIsNothingToShareOutWithoutTwoGpus) {
  EXPECT_EQ(AssignedGpu({}, 0, 1), std::nullopt);
  EXPECT_EQ(AssignedGpu({}, 1, 1), std::nullopt);
}

TEST(GpuAssignmentTest, SaysHowManyGpusAreMissing) {
  EXPECT_EQ(GpuProblem(2, 2), "");
  EXPECT_EQ(GpuProblem(0, 0), "");
  EXPECT_EQ(GpuProblem(0, 1), "it has no GPU, and training.device is CUDA");
  EXPECT_EQ(GpuProblem(2, 4), "it has 2 of the 4 GPUs that training.gpus takes");
}

}  // namespace
}  // namespace rubato
