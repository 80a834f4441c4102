#include "common/straggler/sleep_unless.h"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(SleepUnlessTest, SleepsAsLongAsItIsTold) {
  FakeClock clock;
  const absl::Time begin = clock.Now();
  SleepUnless([] { return false; }, absl::Milliseconds(1234), &clock);
  EXPECT_EQ(clock.Now() - begin, absl::Milliseconds(1234));
}

TEST(SleepUnlessTest, EndsSoon) {
  FakeClock clock;
  const absl::Time begin = clock.Now();
  SleepUnless([&] { return clock.Now() - begin > absl::Seconds(1); }, absl::Minutes(10), &clock);
  EXPECT_LT(clock.Now() - begin, absl::Seconds(2));
}

TEST(SleepUnlessTest, DoesNotBeginWhereItHasEnded) {
  FakeClock clock;
  const absl::Time begin = clock.Now();
  SleepUnless([] { return true; }, absl::Seconds(1), &clock);
  EXPECT_EQ(clock.Now(), begin);
}

TEST(SleepUnlessTest, SleepsForNoTimeUnder0) {
  FakeClock clock;
  const absl::Time begin = clock.Now();
  SleepUnless([] { return false; }, -absl::Seconds(1), &clock);
  EXPECT_EQ(clock.Now(), begin);
}

}  // namespace
}  // namespace rubato
