#include "cli/capacity/exchange.h"

#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

const Exchange kExchange = {
    .sent = 100, .arrived = 110, .taken = 130, .released = 200, .left = 205, .stored = 220, .network_queue = 5};

TEST(ExchangeTest, DividesAWaitFromItsBegin) {
  const StepParts parts = DivideWait(kExchange, 100);
  EXPECT_EQ(parts.network, 25);
  EXPECT_EQ(parts.server, 25);
  EXPECT_EQ(parts.barrier, 70);
  EXPECT_EQ(parts.queued, 20 + 5);
  EXPECT_EQ(parts.total(), 120);
}

TEST(ExchangeTest, CountsOnlyWhatCameAfterTheWaitBegan) {
  const StepParts parts = DivideWait(kExchange, 190);
  EXPECT_EQ(parts.network, 15);
  EXPECT_EQ(parts.server, 5);
  EXPECT_EQ(parts.barrier, 10);
  EXPECT_EQ(parts.total(), 30);
  EXPECT_EQ(parts.queued, 3);  // Of 25 in the network 15 are in the wait.
}

TEST(ExchangeTest, WhatWasBeforeItWasSentIsTheBarrier) {
  EXPECT_EQ(DivideWait(kExchange, 60).barrier, 70 + 40);
  EXPECT_EQ(DivideWait(kExchange, 60).total(), 160);
}

}  // namespace
}  // namespace rubato::capacity
