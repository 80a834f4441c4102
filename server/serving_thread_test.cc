#include "server/serving_thread.h"

#include <gtest/gtest.h>

namespace rubato::server {
namespace {

constexpr ServingThread::Work kSmall = {.gradient_bytes = ServingThread::kSmallBytes};
constexpr ServingThread::Work kLarge = {.gradient_bytes = ServingThread::kSmallBytes + 1};
constexpr ServingThread::Work kShared = {.gradient_bytes = 4, .in_shared_memory = true};

TEST(ServingThreadTest, WithCoresToSpareOnlyWhatIsSmallIsTheCallers) {
  const ServingThread thread(3, 1);
  EXPECT_TRUE(thread.IsCallers(kSmall));
  EXPECT_FALSE(thread.IsCallers(kLarge));
  EXPECT_FALSE(thread.IsCallers(kShared));
}

TEST(ServingThreadTest, PartitionsAreToBeAtWorkAtTheSameTime) {
  const ServingThread thread(2, 2);
  EXPECT_TRUE(thread.IsCallers(kSmall));
  EXPECT_FALSE(thread.IsCallers(kLarge));
  EXPECT_FALSE(thread.IsCallers(kShared));
}

TEST(ServingThreadTest, OnTwoCoresTheCallerServesOneWorker) {
  ServingThread thread(2, 1);
  thread.set_workers(1);
  EXPECT_TRUE(thread.IsCallers(kSmall));
  EXPECT_TRUE(thread.IsCallers(kLarge));
  EXPECT_TRUE(thread.IsCallers(kShared));
}

TEST(ServingThreadTest, WhatIsLargeToReadIsThePartitionsWithSeveralWorkers) {
  ServingThread thread(2, 1);
  thread.set_workers(2);
  EXPECT_TRUE(thread.IsCallers(kSmall));
  EXPECT_FALSE(thread.IsCallers(kLarge));
  EXPECT_TRUE(thread.IsCallers(kShared));
  thread.set_workers(1);
  EXPECT_TRUE(thread.IsCallers(kLarge));
}

}  // namespace
}  // namespace rubato::server
