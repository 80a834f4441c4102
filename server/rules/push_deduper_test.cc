#include "server/rules/push_deduper.h"

#include <gtest/gtest.h>

namespace rubato::server {
namespace {

TEST(PushDeduperTest, HasSeenNothingAtFirst) {
  PushDeduper deduper;
  EXPECT_FALSE(deduper.Seen(0, 1, 0));
  EXPECT_EQ(deduper.LastStep(0, 1), -1);
  EXPECT_TRUE(deduper.Watermarks().empty());
}

TEST(PushDeduperTest, RecognisesStepsUpToTheWatermark) {
  PushDeduper deduper;
  deduper.Record(0, 1, 5, 0);
  EXPECT_TRUE(deduper.Seen(0, 1, 5));
  EXPECT_TRUE(deduper.Seen(0, 1, 3));
  EXPECT_FALSE(deduper.Seen(0, 1, 6));
  EXPECT_EQ(deduper.LastStep(0, 1), 5);
}

TEST(PushDeduperTest, KnowsWhatTheLastStepWasAppliedTo) {
  PushDeduper deduper;
  EXPECT_EQ(deduper.AppliedTo(0, 1, 5), -1);
  deduper.Record(0, 1, 5, 40);
  EXPECT_EQ(deduper.AppliedTo(0, 1, 5), 40);
  deduper.Record(0, 1, 6, 42);
  EXPECT_EQ(deduper.AppliedTo(0, 1, 5), -1);
  EXPECT_EQ(deduper.AppliedTo(0, 1, 6), 42);
  EXPECT_EQ(deduper.AppliedTo(0, 2, 6), -1);
}

TEST(PushDeduperTest, KeepsWorkersApart) {
  PushDeduper deduper;
  deduper.Record(0, 1, 5, 0);
  EXPECT_FALSE(deduper.Seen(1, 1, 5));
  deduper.Record(1, 1, 2, 0);
  EXPECT_EQ(deduper.LastStep(0, 1), 5);
  EXPECT_EQ(deduper.LastStep(1, 1), 2);
}

TEST(PushDeduperTest, NeverLowersAWatermark) {
  PushDeduper deduper;
  deduper.Record(0, 1, 5, 0);
  deduper.Record(0, 1, 4, 0);
  EXPECT_EQ(deduper.LastStep(0, 1), 5);
}

TEST(PushDeduperTest, ANewIncarnationBeginsAnewAndReplacesTheOldOne) {
  PushDeduper deduper;
  deduper.Record(0, 1, 5, 0);
  EXPECT_FALSE(deduper.Seen(0, 2, 3));
  deduper.Record(0, 2, 3, 0);
  EXPECT_TRUE(deduper.Seen(0, 2, 3));
  EXPECT_EQ(deduper.LastStep(0, 1), -1);
  ASSERT_EQ(deduper.Watermarks().size(), 1u);
  EXPECT_EQ(deduper.Watermarks()[0].incarnation, 2u);
}

}  // namespace
}  // namespace rubato::server
