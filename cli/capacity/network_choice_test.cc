#include "cli/capacity/network_choice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

TEST(NetworkChoiceTest, WithoutAValueThereAreNoLinks) {
  const absl::StatusOr<ClusterLinks> links = ParseClusterLinks({}, 3, 2);
  ASSERT_TRUE(links.ok());
  EXPECT_EQ(links->workers.size(), 3u);
  EXPECT_EQ(links->servers.size(), 2u);
  EXPECT_TRUE(links->workers[2].is_none());
}

TEST(NetworkChoiceTest, ALinkAloneIsTheNetworkOfAll) {
  const absl::StatusOr<ClusterLinks> links = ParseClusterLinks({"latency=50us,rate=8gbit"}, 2, 2);
  ASSERT_TRUE(links.ok()) << links.status();
  EXPECT_EQ(links->workers[1], (LinkModel{absl::Microseconds(50), 1e9}));
  // Once between two tasks.
  EXPECT_EQ(links->servers[1], (LinkModel{absl::ZeroDuration(), 1e9}));
}

TEST(NetworkChoiceTest, WhatNamesFewerTasksGoesFirst) {
  const absl::StatusOr<ClusterLinks> links =
      ParseClusterLinks({"worker:1:rate=1mbit", "server:*:rate=80gbit", "rate=8gbit", "worker:*:rate=16gbit"}, 3, 1);
  ASSERT_TRUE(links.ok()) << links.status();
  EXPECT_EQ(links->workers[0].bytes_per_second, 2e9);
  EXPECT_EQ(links->workers[1].bytes_per_second, 125e3);
  EXPECT_EQ(links->servers[0].bytes_per_second, 1e10);
}

TEST(NetworkChoiceTest, RefusesWhatItDoesNotKnow) {
  for (const char* value : {"fast", "client:0:rate=1gbit", "worker:x:rate=1gbit", "worker:3:rate=1gbit",
                            "server:1:rate=1gbit", "worker:*:rate=fast"}) {
    const absl::Status status = ParseClusterLinks({value}, 3, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << value;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("--network: value \"" + std::string(value) + "\""));
  }
  EXPECT_FALSE(ParseClusterLinks({"rate=1gbit", "rate=2gbit"}, 3, 1).ok());
  EXPECT_FALSE(ParseClusterLinks({"worker:1:rate=1gbit", "worker:1:rate=2gbit"}, 3, 1).ok());
}

}  // namespace
}  // namespace rubato::capacity
