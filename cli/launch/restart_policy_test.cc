#include "cli/launch/restart_policy.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;

v1::TaskId Server(uint32_t index) {
  v1::TaskId task;
  task.set_role(v1::TaskId::SERVER);
  task.set_index(index);
  return task;
}

TEST(RestartPolicyTest, TheFirstIsAtOnceAndEachFurtherOneLater) {
  RestartPolicy policy({});
  std::vector<absl::Duration> delays;
  for (int i = 0; i < 5; ++i) {
    delays.push_back(policy.OnLost(Server(0), absl::UnixEpoch()).value_or(absl::InfiniteDuration()));
  }
  EXPECT_THAT(delays, ElementsAre(absl::ZeroDuration(), absl::Milliseconds(500), absl::Seconds(1), absl::Seconds(2),
                                  absl::Seconds(4)));
  EXPECT_FALSE(policy.OnLost(Server(0), absl::UnixEpoch() + absl::Seconds(60)).has_value());
}

TEST(RestartPolicyTest, WhatWasLongAgoDoesNotCount) {
  RestartPolicy policy({});
  for (int i = 0; i < 100; ++i) {
    // Five within each minute.
    const absl::Time now = absl::UnixEpoch() + i * absl::Seconds(13);
    EXPECT_TRUE(policy.OnLost(Server(0), now).has_value()) << i;
  }
  EXPECT_EQ(policy.OnLost(Server(0), absl::UnixEpoch() + absl::Hours(1)), absl::ZeroDuration());
}

TEST(RestartPolicyTest, EachTaskCountsForItself) {
  RestartPolicy policy({.restarts_max = 1});
  v1::TaskId worker = Server(0);
  worker.set_role(v1::TaskId::WORKER);
  EXPECT_EQ(policy.OnLost(Server(0), absl::UnixEpoch()), absl::ZeroDuration());
  EXPECT_EQ(policy.OnLost(Server(1), absl::UnixEpoch()), absl::ZeroDuration());
  EXPECT_EQ(policy.OnLost(worker, absl::UnixEpoch()), absl::ZeroDuration());
  EXPECT_FALSE(policy.OnLost(Server(1), absl::UnixEpoch()).has_value());
}

}  // namespace
}  // namespace rubato
