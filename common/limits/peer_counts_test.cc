#include "common/limits/peer_counts.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace rubato {
namespace {

const Identity kWorker1 = {"job", Party::kWorker, 1};
const Identity kWorker2 = {"job", Party::kWorker, 2};

TEST(PeerCountsTest, ATaskHasSoManyWhereverItCallsFrom) {
  PeerCounts streams({.what = "streams", .per_task = 2, .per_host = 9});
  absl::StatusOr<PeerCounts::Place> first = streams.Take(kWorker1, "ipv4:10.0.0.1:5");
  const absl::StatusOr<PeerCounts::Place> second = streams.Take(kWorker1, "ipv4:10.0.0.2:5");
  ASSERT_TRUE(first.ok() && second.ok());
  const absl::Status third = streams.Take(kWorker1, "ipv4:10.0.0.3:5").status();
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(third.message(), "worker 1 has 2 streams open already; no more at the same time");
  EXPECT_TRUE(streams.Take(kWorker2, "ipv4:10.0.0.1:5").ok());
  first->reset();
  EXPECT_TRUE(streams.Take(kWorker1, "ipv4:10.0.0.1:5").ok());
}

TEST(PeerCountsTest, WhoeverHasNotProvedWhoHeIsSharesWithHisHost) {
  PeerCounts streams({.what = "streams", .per_task = 9, .per_host = 1});
  const absl::StatusOr<PeerCounts::Place> first = streams.Take(std::nullopt, "ipv6:%5Bfe80::1%5D:5");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(streams.Take(std::nullopt, "ipv6:[fe80::1]:6").status().message(),
            "[fe80::1] has 1 streams open already; no more at the same time");
  EXPECT_TRUE(streams.Take(std::nullopt, "ipv4:10.0.0.1:5").ok());
}

TEST(PeerCountsTest, PlacesOutliveTheCounts) {
  auto streams = std::make_unique<PeerCounts>(PeerCounts::Options{.what = "streams", .per_task = 1, .per_host = 1});
  absl::StatusOr<PeerCounts::Place> place = streams->Take(kWorker1, "");
  ASSERT_TRUE(place.ok());
  streams.reset();
  place->reset();
}

}  // namespace
}  // namespace rubato
