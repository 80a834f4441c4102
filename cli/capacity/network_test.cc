#include "cli/capacity/network.h"

#include <map>

#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

constexpr SimTime kMillisecond = 1'000'000;

// Two senders and a receiver.
class NetworkTest : public testing::Test, public EventTarget {
 protected:
  void OnEvent(uint64_t what) override { arrived_[what] = queue_.now(); }

  void Connect(const LinkModel& link) {
    for (int i = 0; i < 3; ++i) {
      endpoints_[i].link = link;
      endpoints_[i].transport = &transports_[i];
    }
  }

  void Send(Network* network, int from, int64_t bytes, uint64_t slot) {
    network->Send({.from = &endpoints_[from],
                   .to = &endpoints_[2],
                   .bytes = bytes,
                   .target = this,
                   .what = slot,
                   .queued = &queued_[slot]},
                  slot);
  }

  void RunAll() {
    while (queue_.RunNext()) continue;
  }

  EventQueue queue_;
  ServiceQueue transports_[3] = {ServiceQueue(1), ServiceQueue(1), ServiceQueue(1)};
  Endpoint endpoints_[3];
  std::map<uint64_t, SimTime> arrived_;
  std::map<uint64_t, SimTime> queued_;
};

TEST_F(NetworkTest, AMessageTakesBothTransportsTheRateAndTheLatencies) {
  // A megabyte takes 8 ms.
  Connect({.latency = absl::Milliseconds(1), .bytes_per_second = 125e6});
  Network network({.queue = &queue_, .transport = {.fixed = 0.5e-3}, .slots = 4});
  Send(&network, 0, 1'000'000, 0);
  RunAll();
  EXPECT_EQ(arrived_[0], 11 * kMillisecond);  // 0.5 + 8 + 2 + 0.5: links pass bytes on as they come.
  EXPECT_EQ(queued_[0], 0);
}

TEST_F(NetworkTest, MessagesOfSeveralSendersQueueAtTheReceiversLink) {
  Connect({.bytes_per_second = 125e6});
  Network network({.queue = &queue_, .slots = 4});
  Send(&network, 0, 1'000'000, 0);
  Send(&network, 1, 1'000'000, 1);
  RunAll();
  EXPECT_EQ(arrived_[0], 8 * kMillisecond);
  EXPECT_EQ(arrived_[1], 16 * kMillisecond);
  EXPECT_EQ(queued_[1], 8 * kMillisecond);
  EXPECT_EQ(endpoints_[2].down.busy(), 16 * kMillisecond);
}

TEST_F(NetworkTest, OfOneSenderOneFollowsTheOther) {
  Connect({.bytes_per_second = 125e6});
  Network network({.queue = &queue_, .slots = 4});
  Send(&network, 0, 1'000'000, 0);
  Send(&network, 0, 500'000, 1);
  RunAll();
  EXPECT_EQ(arrived_[1], 12 * kMillisecond);
  EXPECT_EQ(queued_[1], 8 * kMillisecond);
}

TEST_F(NetworkTest, WhatIsReadInPlaceTakesNoLink) {
  Connect({.latency = absl::Milliseconds(1), .bytes_per_second = 125e6});
  Network network({.queue = &queue_, .transport = {.per_byte = 1e-9}, .in_place = true, .slots = 4});
  Send(&network, 0, 1'000'000, 0);
  RunAll();
  EXPECT_EQ(arrived_[0], 4 * kMillisecond);
  EXPECT_EQ(endpoints_[2].down.busy(), 0);
}

TEST_F(NetworkTest, ProcessorsThatAreSharedAreNotTakenBeforeTheLastByteCame) {
  Connect({.bytes_per_second = 125e6});
  ServiceQueue processors(2);
  endpoints_[2].transport = &processors;
  Network network({.queue = &queue_, .transport = {.fixed = 1e-3}, .slots = 4});
  Send(&network, 0, 1'000'000, 0);
  queue_.RunNext();  // Its first byte is there.
  EXPECT_EQ(processors.busy(), 0);
  RunAll();
  EXPECT_EQ(arrived_[0], 10 * kMillisecond);
}

}  // namespace
}  // namespace rubato::capacity
