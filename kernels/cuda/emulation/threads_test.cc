#include "kernels/cuda/emulation/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace rubato::cuda::emulation {
namespace {

constexpr int kThreads = 96;

TEST(EmulatedThreadsTest, RunEachThreadOfEachBlockOnce) {
  std::vector<std::array<unsigned, 6>> ran;
  RunThreads("kernel", dim3(2, 3), dim3(4, 2), [&] {
    const Place& here = Here();
    EXPECT_EQ(here.blocks.y, 3u);
    EXPECT_EQ(here.threads.x, 4u);
    ran.push_back({here.block.x, here.block.y, here.block.z, here.thread.x, here.thread.y, here.thread.z});
  });
  EXPECT_EQ(ran.size(), 2u * 3 * 4 * 2);
  std::sort(ran.begin(), ran.end());
  EXPECT_EQ(std::unique(ran.begin(), ran.end()), ran.end());
}

// Each thread reads what its neighbour has written.
std::vector<int> Rotate(bool waits) {
  std::vector<int> from(kThreads, -1), to(kThreads);
  RunThreads("rotate", dim3(1), dim3(kThreads), [&] {
    const unsigned thread = Here().thread.x;
    from[thread] = static_cast<int>(thread);
    if (waits) AwaitBlock();
    to[thread] = from[(thread + 1) % kThreads];
  });
  return to;
}

TEST(EmulatedThreadsTest, WaitForTheirBlock) {
  std::vector<int> expected;
  for (int thread = 0; thread < kThreads; ++thread) expected.push_back((thread + 1) % kThreads);
  for (int run = 0; run < 10; ++run) EXPECT_EQ(Rotate(true), expected);
}

TEST(EmulatedThreadsTest, AMissingBarrierShows) {
  int wrong = 0;
  for (int run = 0; run < 10; ++run) wrong += testing::Value(Rotate(false), testing::Contains(-1));
  EXPECT_GT(wrong, 0);
}

// Warps that wait for their own lanes alone, and read what the last warp has written.
TEST(EmulatedThreadsTest, AMissingBarrierShowsBetweenWarps) {
  int wrong = 0;
  for (int run = 0; run < 20; ++run) {
    std::vector<int> from(kThreads, -1), to(kThreads);
    RunThreads("ahead", dim3(1), dim3(kThreads), [&] {
      const unsigned thread = Here().thread.x;
      from[thread] = static_cast<int>(thread);
      (void)AwaitWarp(0);
      to[thread] = from[(thread + 32) % kThreads];
    });
    wrong += testing::Value(to, testing::Contains(-1));
  }
  EXPECT_GT(wrong, 0);
}

TEST(EmulatedThreadsTest, LanesExchange) {
  std::vector<uint32_t> sums(kThreads);
  RunThreads("exchange", dim3(1), dim3(kThreads), [&] {
    const unsigned thread = Here().thread.x;
    uint32_t sum = 0;
    for (uint32_t round = 1; round <= 5; ++round) {
      const Exchange given = AwaitWarp(thread * round);
      EXPECT_EQ(given.lane, static_cast<int>(thread % 32));
      for (int lane = 0; lane < 32; ++lane) sum += given.values[lane];
    }
    sums[thread] = sum;
  });
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    const uint32_t first = thread / 32 * 32;
    EXPECT_EQ(sums[thread], (32 * first + 31 * 16) * 15) << thread;
  }
}

using EmulatedThreadsDeathTest = ::testing::Test;

TEST(EmulatedThreadsDeathTest, ABarrierThatNotAllReachEndsTheProgram) {
  EXPECT_DEATH(RunThreads("uneven", dim3(1), dim3(kThreads),
                          [] {
                            if (Here().thread.x != 7) AwaitBlock();
                          }),
               "uneven: 95 threads of block 0 0 0 wait for others, of which 1 have ended");
}

}  // namespace
}  // namespace rubato::cuda::emulation
