#include "kernels/cuda/access_order.h"

#include <gtest/gtest.h>

#include "common/random.h"

namespace rubato::cuda {
namespace {

TEST(AccessOrderTest, ReadsWaitForTheWriteBeforeThem) {
  AccessOrder order;
  Accesses tensor;
  EXPECT_TRUE(order.Before(kCompute, {}, {&tensor}).empty());
  order.Enqueued(kCompute, {}, {&tensor});
  const auto waits = order.Before(kCopyOut, {&tensor}, {});
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].lane, kCompute);
  EXPECT_EQ(waits[0].ticket, 1);
}

TEST(AccessOrderTest, ReadsDoNotWaitForReads) {
  AccessOrder order;
  Accesses tensor;
  order.Enqueued(kCompute, {&tensor}, {});
  EXPECT_TRUE(order.Before(kCopyOut, {&tensor}, {}).empty());
}

TEST(AccessOrderTest, WritesWaitForReads) {
  AccessOrder order;
  Accesses weights, other;
  order.Enqueued(kCompute, {&weights}, {});
  order.Enqueued(kCompute, {&other}, {});
  const auto waits = order.Before(kCopyIn, {}, {&weights});
  ASSERT_EQ(waits.size(), 1u);
  // And not for work on other memory that came later.
  EXPECT_EQ(waits[0].ticket, 1);
}

TEST(AccessOrderTest, NothingIsWaitedForTwice) {
  AccessOrder order;
  Accesses tensor;
  order.Enqueued(kCompute, {}, {&tensor});
  order.Waited(kCopyOut, kCompute, 1);
  EXPECT_TRUE(order.Before(kCopyOut, {&tensor}, {}).empty());
}

// Every pair of uses of which one writes must be ordered by lanes and waits, whatever is done.
TEST(AccessOrderTest, ConflictingUsesAreAlwaysOrdered) {
  constexpr uint64_t kSeed = 7;
  Random random(kSeed);
  for (int round = 0; round < 200; ++round) {
    AccessOrder order;
    constexpr int kTensors = 4;
    Accesses tensors[kTensors];
    // finished[l][t][o]: the work of lane o that is finished when work t of lane l begins.
    std::vector<std::array<Ticket, kLanes>> begins[kLanes];
    std::array<std::array<Ticket, kLanes>, kLanes> now = {};
    struct Use {
      int lane;
      Ticket ticket;
      int tensor;
      bool writes;
    };
    std::vector<Use> uses;
    for (int step = 0; step < 60; ++step) {
      const Lane lane = static_cast<Lane>(random.Below(kLanes));
      const int read = static_cast<int>(random.Below(kTensors)), written = static_cast<int>(random.Below(kTensors));
      for (const AccessOrder::Wait& wait : order.Before(lane, {&tensors[read]}, {&tensors[written]})) {
        // An event covers the work asked for, or more.
        const Ticket covered = wait.ticket + random.Below(order.newest(wait.lane) - wait.ticket + 1);
        order.Waited(lane, wait.lane, covered);
        now[lane][wait.lane] = std::max(now[lane][wait.lane], covered);
        // What that work had waited for is finished as well.
        for (int o = 0; o < kLanes; ++o) {
          now[lane][o] = std::max(now[lane][o], begins[wait.lane][covered - 1][o]);
        }
      }
      const Ticket ticket = order.Enqueued(lane, {&tensors[read]}, {&tensors[written]});
      now[lane][lane] = ticket - 1;
      begins[lane].push_back(now[lane]);
      uses.push_back({lane, ticket, read, false});
      uses.push_back({lane, ticket, written, true});
      const std::array<Ticket, kLanes>& done = begins[lane].back();
      for (const Use& use : uses) {
        const bool same_work = use.lane == lane && use.ticket == ticket;
        const bool conflicts = (use.writes && use.tensor == read) || use.tensor == written;
        if (same_work || !conflicts) continue;
        ASSERT_GE(done[use.lane], use.ticket) << "seed " << kSeed << ", round " << round << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace rubato::cuda
