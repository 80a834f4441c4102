#include "bench/push_pull/ratios.h"

#include <gtest/gtest.h>

namespace rubato::bench {
namespace {

TEST(RatiosTest, TakesTheBestOfEachSideForBandwidthAndOneInFlightForRoundTrips) {
  const std::vector<BenchCase> ratios = Ratios({
      {.subject = "rubato", .size = 4096, .in_flight = 1, .gb_per_s = 1, .round_trips_per_s = 10000},
      {.subject = "rubato", .size = 4096, .in_flight = 8, .gb_per_s = 3, .round_trips_per_s = 30000},
      {.subject = "bytebuffer_stream", .size = 4096, .in_flight = 1, .gb_per_s = 2, .round_trips_per_s = 20000},
      {.subject = "bytebuffer_stream", .size = 4096, .in_flight = 8, .gb_per_s = 1.5, .round_trips_per_s = 15000},
  });
  ASSERT_EQ(ratios.size(), 2);
  EXPECT_EQ(ratios[0].name, "rubato/bytebuffer_stream bandwidth 4KiB");
  EXPECT_DOUBLE_EQ(ratios[0].values[0].second, 1.5);
  EXPECT_EQ(ratios[1].name, "rubato/bytebuffer_stream round trips 4KiB");
  EXPECT_DOUBLE_EQ(ratios[1].values[0].second, 0.5);
}

TEST(RatiosTest, LeavesOutWhatWasNotMeasured) {
  EXPECT_TRUE(Ratios({{.subject = "rubato", .size = 4096, .gb_per_s = 1, .round_trips_per_s = 1}}).empty());
  EXPECT_TRUE(Ratios({{.subject = "rubato", .size = 4096, .gb_per_s = 1, .round_trips_per_s = 1},
                      {.subject = "stub", .size = 16384, .gb_per_s = 1, .round_trips_per_s = 1}})
                  .empty());
}

}  // namespace
}  // namespace rubato::bench
