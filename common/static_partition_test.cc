#include "common/static_partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace rubato {
namespace {

TEST(StaticPartitionTest, MembersTakeConsecutiveParts) {
  for (int64_t rank = 0; rank < 3; ++rank) {
    StaticRange range = StaticSlice(0, 0, 2, rank, 3, 4, 100);
    EXPECT_EQ(range.epoch, 0);
    EXPECT_EQ(range.begin, 24 + 4 * rank);
    EXPECT_EQ(range.end, 28 + 4 * rank);
  }
}

TEST(StaticPartitionTest, LastGroupIsCutAtTheEpochsEnd) {
  // 9 examples in groups of 6: step 1 has three, and the last of three members none.
  EXPECT_EQ(StaticSlice(0, 0, 1, 0, 3, 2, 9).begin, 6);
  EXPECT_EQ(StaticSlice(0, 0, 1, 0, 3, 2, 9).end, 8);
  EXPECT_EQ(StaticSlice(0, 0, 1, 1, 3, 2, 9).begin, 8);
  EXPECT_EQ(StaticSlice(0, 0, 1, 1, 3, 2, 9).end, 9);
  StaticRange none = StaticSlice(0, 0, 1, 2, 3, 2, 9);
  EXPECT_EQ(none.begin, none.end);
  EXPECT_EQ(StaticPosition(0, 0, 2, 3, 2, 9), 9);
  EXPECT_EQ(StaticSlice(0, 0, 2, 0, 3, 2, 9).epoch, 1);
  EXPECT_EQ(StaticSlice(0, 0, 2, 0, 3, 2, 9).begin, 0);
}

// Walks the stream one step at a time, as the definition says, and compares every closed form with it.
TEST(StaticPartitionTest, AgreesWithTheStepByStepDefinition) {
  for (int64_t examples : {1, 2, 7, 12}) {
    for (int64_t members : {1, 2, 3}) {
      for (int64_t batch : {1, 2, 5, 20}) {
        for (int64_t first_example : {0, 1, 6, 12, 25}) {
          int64_t position = first_example;
          std::vector<int64_t> end_step(8, -1);
          for (int64_t step = 10; step < 60; ++step) {
            for (int64_t epochs = 0; epochs < 8; ++epochs) {
              if (end_step[epochs] < 0 && position >= epochs * examples) end_step[epochs] = step;
            }
            ASSERT_EQ(StaticPosition(first_example, 10, step, members, batch, examples), position);
            const int64_t epoch_end = (position / examples + 1) * examples;
            for (int64_t rank = 0; rank < members; ++rank) {
              StaticRange range = StaticSlice(first_example, 10, step, rank, members, batch, examples);
              ASSERT_EQ(range.epoch, position / examples);
              const int64_t begin = std::min(position + rank * batch, epoch_end);
              ASSERT_EQ(range.begin, begin - range.epoch * examples);
              ASSERT_EQ(range.end, std::min(begin + batch, epoch_end) - range.epoch * examples);
            }
            position = std::min(position + members * batch, epoch_end);
          }
          for (int64_t epochs = 0; epochs < 8; ++epochs) {
            if (end_step[epochs] < 0) continue;
            EXPECT_EQ(StaticEndStep(first_example, 10, epochs, members, batch, examples), end_step[epochs]);
          }
        }
      }
    }
  }
}

TEST(StaticPartitionTest, HugeCountsSaturateInsteadOfOverflowing) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(StaticPosition(0, 0, kMax, 1024, 1 << 20, (int64_t{1} << 31) - 1), kMax);
  EXPECT_EQ(StaticEndStep(0, 5, kMax, 1, 1, 1000), kMax);
  EXPECT_EQ(StaticPosition(0, 0, 1, kMax, kMax, 1000), 1000);
}

}  // namespace
}  // namespace rubato
