#include "kernels/cuda/memory_pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>

namespace rubato::cuda {
namespace {

// The host's memory, up to a limit.
class MemoryPoolTest : public ::testing::Test {
 protected:
  MemoryPool::Source Source(int64_t limit) {
    return {.allocate = [this, limit](int64_t bytes) -> absl::StatusOr<void*> {
              ++allocations_;
              if (in_use_ + bytes > limit) return absl::ResourceExhaustedError("full");
              in_use_ += bytes;
              void* memory = std::aligned_alloc(256, bytes);
              sizes_[memory] = bytes;
              return memory;
            },
            .free =
                [this](void* memory) {
                  in_use_ -= sizes_.at(memory);
                  sizes_.erase(memory);
                  std::free(memory);
                }};
  }

  int allocations_ = 0;
  int64_t in_use_ = 0;
  std::map<void*, int64_t> sizes_;
};

TEST_F(MemoryPoolTest, GivesABlockOutAgainWithItsHistory) {
  MemoryPool pool(Source(1 << 20));
  auto first = *pool.Allocate(1000);
  EXPECT_EQ(first->bytes(), 1024);
  first->accesses().used[kCopyOut] = 9;
  void* address = first->address();
  first.reset();
  EXPECT_EQ(pool.unused_bytes(), 1024);
  auto second = *pool.Allocate(900);
  EXPECT_EQ(second->address(), address);
  EXPECT_EQ(second->accesses().used[kCopyOut], 9);
  EXPECT_EQ(allocations_, 1);
  EXPECT_EQ(pool.unused_bytes(), 0);
}

TEST_F(MemoryPoolTest, DoesNotSpendALargeBlockOnASmallNeed) {
  MemoryPool pool(Source(1 << 20));
  pool.Allocate(100000)->reset();
  auto small = *pool.Allocate(1000);
  EXPECT_EQ(small->bytes(), 1024);
}

TEST_F(MemoryPoolTest, GivesUnusedBlocksBackBeforeItRefuses) {
  MemoryPool pool(Source(100 * 1024));
  pool.Allocate(80 * 1024)->reset();
  auto block = pool.Allocate(40 * 1024);
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(in_use_, 40 * 1024);
  EXPECT_EQ(pool.Allocate(80 * 1024).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(MemoryPoolTest, TakesBlocksFromWhatIsReserved) {
  std::optional<MemoryPool> pool(Source(10 * 1024));
  ASSERT_TRUE(pool->Reserve(4096).ok());
  EXPECT_EQ(pool->unused_bytes(), 4096);
  auto first = *pool->Allocate(1000), second = *pool->Allocate(3000);
  EXPECT_EQ(static_cast<char*>(second->address()), static_cast<char*>(first->address()) + 1024);
  EXPECT_EQ(allocations_, 1);
  EXPECT_EQ(pool->unused_bytes(), 0);
  // More than is reserved; what is unused of the reserve stays when others need memory.
  second.reset();
  EXPECT_EQ(pool->Allocate(8 * 1024).status().code(), absl::StatusCode::kResourceExhausted);
  auto third = *pool->Allocate(5000);
  EXPECT_EQ(in_use_, 4096 + 5120);
  EXPECT_EQ(pool->unused_bytes(), 3072);
  pool.reset();
  first.reset();
  third.reset();
  EXPECT_EQ(in_use_, 0);
}

TEST_F(MemoryPoolTest, RefusesToReserveWhatThereIsNot) {
  MemoryPool pool(Source(1024));
  EXPECT_EQ(pool.Reserve(2048).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(pool.Allocate(1024).ok());
}

TEST_F(MemoryPoolTest, BlocksThatOutliveThePoolAreFreed) {
  std::optional<MemoryPool> pool(Source(1 << 20));
  auto kept = *pool->Allocate(0);
  EXPECT_EQ(kept->bytes(), 256);
  pool->Allocate(5000)->reset();
  pool.reset();
  EXPECT_EQ(in_use_, 256);
  kept.reset();
  EXPECT_EQ(in_use_, 0);
}

}  // namespace
}  // namespace rubato::cuda
