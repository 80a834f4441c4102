#include "server/serving_thread.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace rubato::server {
namespace {

// Whether large pushes are the caller's, those in messages and those in shared memory. Small ones always are.
struct Large {
  bool in_message;
  bool in_shared_memory;
};

void ExpectCallers(const ServingThread& thread, Large large) {
  constexpr size_t kSmall = ServingThread::kSmallBytes;
  EXPECT_TRUE(thread.IsCallers({.gradient_bytes = kSmall}));
  EXPECT_TRUE(thread.IsCallers({.gradient_bytes = kSmall, .in_shared_memory = true, .is_of_table = true}));
  EXPECT_EQ(thread.IsCallers({.gradient_bytes = kSmall + 1}), large.in_message);
  EXPECT_EQ(thread.IsCallers({.gradient_bytes = 4, .in_shared_memory = true}), large.in_shared_memory);
  EXPECT_EQ(thread.IsCallers({.gradient_bytes = kSmall + 1, .in_shared_memory = true, .is_of_table = true}),
            large.in_shared_memory);
}

TEST(ServingThreadTest, WithCoresToSpareOnlyWhatIsSmallIsTheCallers) {
  ExpectCallers(ServingThread(3, 1), {.in_message = false, .in_shared_memory = false});
}

TEST(ServingThreadTest, PartitionsAreToBeAtWorkAtTheSameTime) {
  ExpectCallers(ServingThread(2, 2), {.in_message = false, .in_shared_memory = false});
}

TEST(ServingThreadTest, WhatIsLargeToReadIsThePartitionsOnTwoCoresWithSeveralWorkers) {
  ServingThread thread(2, 1);
  ExpectCallers(thread, {.in_message = true, .in_shared_memory = true});
  thread.set_workers(2);
  ExpectCallers(thread, {.in_message = false, .in_shared_memory = true});
  thread.set_workers(1);
  ExpectCallers(thread, {.in_message = true, .in_shared_memory = true});
}

}  // namespace
}  // namespace rubato::server
