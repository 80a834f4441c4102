#include "common/shared_memory/blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace rubato {
namespace {

constexpr size_t kBytes = size_t{1} << 20;

std::shared_ptr<SharedArena> Arena() {
  auto arena = SharedArena::Create("test", kBytes);
  EXPECT_TRUE(arena.ok()) << arena.status();
  return *std::move(arena);
}

TEST(SharedBlocksTest, BlocksAreApartAndAligned) {
  const auto blocks = SharedBlocks::Create(Arena(), kBytes);
  std::vector<std::shared_ptr<void>> taken;
  for (const size_t bytes : {0, 1, 4096, 4097, 5000, 100'000}) {
    taken.push_back(blocks->Take(bytes));
    ASSERT_NE(taken.back(), nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(taken.back().get()) % SharedArena::kAlignment, 0);
    EXPECT_TRUE(blocks->region().OffsetOf(taken.back().get(), bytes).has_value());
    std::memset(taken.back().get(), static_cast<int>(taken.size()), bytes);
  }
  EXPECT_EQ(static_cast<const char*>(taken[4].get())[4999], 5);
  EXPECT_EQ(static_cast<const char*>(taken[5].get())[0], 6);
}

TEST(SharedBlocksTest, WhatComesBackIsTakenAgain) {
  const std::shared_ptr<SharedArena> arena = Arena();
  const auto blocks = SharedBlocks::Create(arena, kBytes);
  std::shared_ptr<void> first = blocks->Take(5000);
  const void* const where = first.get();
  const size_t left = arena->bytes_left();
  // Somebody else holds it still.
  std::shared_ptr<void> other = first;
  first.reset();
  EXPECT_NE(blocks->Take(6000).get(), where);
  other.reset();
  EXPECT_EQ(blocks->Take(8192).get(), where);
  // Of the same size are those up to a power of two.
  EXPECT_LT(arena->bytes_left(), left);
  EXPECT_NE(blocks->Take(4000).get(), where);
}

TEST(SharedBlocksTest, ThereIsNoMoreThanTheirShareOfTheArena) {
  const std::shared_ptr<SharedArena> arena = Arena();
  const auto blocks = SharedBlocks::Create(arena, 3 * 4096);
  std::vector<std::shared_ptr<void>> taken;
  for (int i = 0; i < 3; ++i) taken.push_back(blocks->Take(4096));
  EXPECT_NE(taken.back(), nullptr);
  EXPECT_EQ(blocks->Take(1), nullptr);
  EXPECT_GT(arena->bytes_left(), kBytes / 2);
  taken.pop_back();
  EXPECT_NE(blocks->Take(1), nullptr);
  EXPECT_EQ(blocks->Take(std::numeric_limits<size_t>::max()), nullptr);
}

TEST(SharedBlocksTest, AFullArenaHasNone) {
  const std::shared_ptr<SharedArena> arena = Arena();
  const auto blocks = SharedBlocks::Create(arena, 16 * kBytes);
  EXPECT_EQ(blocks->Take(2 * kBytes), nullptr);
  ASSERT_NE(arena->Allocate(arena->bytes_left()), nullptr);
  EXPECT_EQ(blocks->Take(1), nullptr);
}

TEST(SharedBlocksTest, ABlockKeepsThemAll) {
  auto blocks = SharedBlocks::Create(Arena(), kBytes);
  const std::shared_ptr<void> block = blocks->Take(100);
  blocks.reset();
  std::memset(block.get(), 1, 100);
}

TEST(SharedBlocksTest, ArraysThatDoNotFitAreOnTheHeap) {
  const auto blocks = SharedBlocks::Create(Arena(), 4096);
  const std::shared_ptr<float[]> fits = ArrayIn<float>(blocks.get(), 1024);
  EXPECT_TRUE(blocks->region().OffsetOf(fits.get(), 4096).has_value());
  const std::shared_ptr<float[]> heap = ArrayIn<float>(blocks.get(), 1024);
  EXPECT_FALSE(blocks->region().OffsetOf(heap.get(), 4096).has_value());
  const std::shared_ptr<uint64_t[]> without = ArrayIn<uint64_t>(nullptr, 3);
  without[2] = 7;
  EXPECT_EQ(without[2], 7);
}

TEST(SharedBlocksTest, ServesThreads) {
  const auto blocks = SharedBlocks::Create(Arena(), kBytes);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&blocks, thread] {
      for (int i = 0; i < 500; ++i) {
        const std::shared_ptr<uint8_t[]> mine = ArrayIn<uint8_t>(blocks.get(), 3000);
        std::memset(mine.get(), thread, 3000);
        EXPECT_EQ(mine[2999], thread);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rubato
