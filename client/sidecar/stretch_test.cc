#include "client/sidecar/stretch.h"

#include <gtest/gtest.h>

namespace rubato::client {
namespace {

TEST(StretchTest, TakesAsManyTimesAsLong) {
  FakeClock clock;
  const absl::Time begin = clock.Now();
  clock.Advance(absl::Milliseconds(300));
  Stretch(&clock, begin, 4, [] { return false; });
  EXPECT_EQ(clock.Now() - begin, absl::Milliseconds(1200));
}

TEST(StretchTest, WaitsForNothingWhereNobodyIsSlowedDown) {
  FakeClock clock;
  const absl::Time begin = clock.Now();
  clock.Advance(absl::Seconds(1));
  Stretch(&clock, begin, 1, [] { return false; });
  EXPECT_EQ(clock.Now() - begin, absl::Seconds(1));
}

TEST(StretchTest, EndsWithTheWorker) {
  FakeClock clock;
  const absl::Time begin = clock.Now();
  clock.Advance(absl::Seconds(100));
  Stretch(&clock, begin, 4, [&] { return clock.Now() - begin > absl::Seconds(101); });
  EXPECT_LT(clock.Now() - begin, absl::Seconds(102));
}

}  // namespace
}  // namespace rubato::client
