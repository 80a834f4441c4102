#include "common/session/clock_offset.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

absl::Time At(int64_t milliseconds) { return absl::UnixEpoch() + absl::Milliseconds(milliseconds); }

TEST(ClockOffsetTest, KnowsNothingBeforeTheFirstMessage) { EXPECT_FALSE(ClockOffset().best().has_value()); }

TEST(ClockOffsetTest, TakesTheMidpointAndSaysHowFarItMayBeOff) {
  ClockOffset offset;
  offset.Add(At(100), At(104), At(1102));
  EXPECT_EQ(offset.best()->ahead, absl::Milliseconds(1000));
  EXPECT_EQ(offset.best()->error, absl::Milliseconds(2));
}

TEST(ClockOffsetTest, TheQuickestMessageCounts) {
  ClockOffset offset;
  offset.Add(At(0), At(80), At(1079));  // Slow on the way there.
  offset.Add(At(100), At(102), At(1101));
  offset.Add(At(200), At(260), At(1201));  // Slow on the way back.
  EXPECT_EQ(offset.best()->ahead, absl::Milliseconds(1000));
  EXPECT_EQ(offset.best()->error, absl::Milliseconds(1));
}

TEST(ClockOffsetTest, ForgetsWhatIsOld) {
  ClockOffset offset;
  offset.Add(At(0), At(0), At(50));
  for (size_t i = 0; i < ClockOffset::kLatest; ++i) offset.Add(At(10), At(12), At(21));
  EXPECT_EQ(offset.best()->ahead, absl::Milliseconds(10));
}

TEST(ClockOffsetTest, LeavesOutWhatCannotBe) {
  ClockOffset offset;
  offset.Add(At(5), At(4), At(4));
  EXPECT_FALSE(offset.best().has_value());
}

}  // namespace
}  // namespace rubato
