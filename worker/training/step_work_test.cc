#include "worker/training/step_work.h"

#include <gtest/gtest.h>

namespace rubato::worker {
namespace {

v1::TrainingConfig Training(uint32_t batch_size, uint32_t micro_batches) {
  v1::TrainingConfig training;
  training.set_batch_size(batch_size);
  training.set_micro_batches(micro_batches);
  return training;
}

TEST(StepWorkTest, AStepIsOneBatchOfAllItsExamples) {
  const std::vector<LocalBatch> batches = SplitStep(Training(4, 1), /*local_sgd=*/false, 10);
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].examples, 10);
  EXPECT_TRUE(batches[0].last);
}

TEST(StepWorkTest, WithLocalSgdItsBatchesFollowEachOtherAndTheLastMayBeShorter) {
  const std::vector<LocalBatch> batches = SplitStep(Training(4, 1), /*local_sgd=*/true, 10);
  ASSERT_EQ(batches.size(), 3u);
  int64_t next = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(batches[i].number, static_cast<int64_t>(i));
    EXPECT_EQ(batches[i].begin, next);
    EXPECT_EQ(batches[i].last, i == 2);
    next += batches[i].examples;
  }
  EXPECT_EQ(next, 10);
  EXPECT_EQ(batches[2].examples, 2);
}

TEST(StepWorkTest, MicroBatchesAreAllExamplesOfTheirBatchOnce) {
  for (uint32_t count : {1u, 3u, 7u}) {
    const LocalBatch second = SplitStep(Training(7, count), /*local_sgd=*/true, 14)[1];
    ASSERT_EQ(second.micro_batches, count);
    int64_t next = second.begin;
    for (int64_t i = 0; i < second.micro_batches; ++i) {
      const MicroBatch micro_batch = MicroBatchOf(second, i);
      EXPECT_EQ(micro_batch.begin, next);
      EXPECT_GE(micro_batch.count, 7 / count);
      EXPECT_LE(micro_batch.count, (7 + count - 1) / count);
      next += micro_batch.count;
    }
    EXPECT_EQ(next, 14);
  }
}

TEST(StepWorkTest, NoMicroBatchIsEmpty) {
  EXPECT_EQ(SplitStep(Training(8, 5), /*local_sgd=*/false, 3)[0].micro_batches, 3);
}

}  // namespace
}  // namespace rubato::worker
