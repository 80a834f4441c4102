#include "common/shared_memory/arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "common/float_buffer.h"

namespace rubato {
namespace {

TEST(SharedArenaTest, PartsAreAlignedZeroAndApart) {
  const std::shared_ptr<SharedArena> arena = SharedArena::Create("test", 1024).value();
  uint8_t* first = static_cast<uint8_t*>(arena->Allocate(1));
  uint8_t* second = static_cast<uint8_t*>(arena->Allocate(65));
  uint8_t* third = static_cast<uint8_t*>(arena->Allocate(0));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % SharedArena::kAlignment, 0u);
  EXPECT_EQ(second, first + 64);
  EXPECT_EQ(third, first + 192);
  EXPECT_EQ(second[64], 0);
  EXPECT_EQ(arena->bytes_left(), 1024u - 256u);
  EXPECT_EQ(arena->region().OffsetOf(second, 65), 64u);
}

TEST(SharedArenaTest, IsUsedUpToTheLastByte) {
  const std::shared_ptr<SharedArena> arena = SharedArena::Create("test", 100).value();
  EXPECT_EQ(arena->Allocate(101), nullptr);
  EXPECT_EQ(arena->Allocate(std::numeric_limits<size_t>::max()), nullptr);
  EXPECT_NE(arena->Allocate(64), nullptr);
  EXPECT_EQ(arena->Allocate(37), nullptr);
  EXPECT_NE(arena->Allocate(36), nullptr);
  EXPECT_EQ(arena->bytes_left(), 0u);
  EXPECT_EQ(arena->Allocate(1), nullptr);
  EXPECT_EQ(arena->Allocate(0), nullptr);
}

TEST(SharedArenaTest, LeavesAloneWhatIsInUseOfARegion) {
  const std::shared_ptr<SharedRegion> region = SharedRegion::Create("test", 1024).value();
  const std::shared_ptr<SharedArena> arena = SharedArena::Wrap(region, 100).value();
  EXPECT_EQ(arena->Allocate(10), region->mutable_data() + 128);
  EXPECT_EQ(SharedArena::Wrap(region, 1025).status().message(),
            "1025 bytes of shared memory are in use, and it has 1024");
}

TEST(SharedArenaTest, BytesForIsWhatThePartsNeed) {
  const std::shared_ptr<SharedArena> arena = SharedArena::Create("test", SharedArena::BytesFor(3, 65)).value();
  for (int i = 0; i < 3; ++i) EXPECT_NE(arena->Allocate(65), nullptr);
  EXPECT_EQ(arena->bytes_left(), 0u);
}

TEST(SharedArenaTest, ThreadsGetDifferentParts) {
  const std::shared_ptr<SharedArena> arena = SharedArena::Create("test", 400 * 64).value();
  std::vector<std::vector<void*>> parts(4);
  std::vector<std::thread> threads;
  for (std::vector<void*>& mine : parts) {
    threads.emplace_back([&arena, &mine] {
      for (int i = 0; i < 100; ++i) mine.push_back(arena->Allocate(64));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<void*> all;
  for (const std::vector<void*>& some : parts) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), 400u);
  EXPECT_EQ(all.count(nullptr), 0u);
}

TEST(SharedArenaTest, FloatBufferInAPartIsZeroedAndKeepsTheArena) {
  std::shared_ptr<SharedArena> arena = SharedArena::Create("test", 4096).value();
  void* part = arena->Allocate(100 * sizeof(float));
  std::memset(part, 1, 100 * sizeof(float));
  FloatBuffer::Ptr buffer = FloatBuffer::Wrap(static_cast<float*>(part), 100, arena);
  const std::weak_ptr<SharedArena> watch = arena;
  arena = nullptr;
  EXPECT_EQ(buffer->size(), 100);
  EXPECT_EQ(buffer->data(), part);
  for (int64_t i = 0; i < buffer->size(); ++i) ASSERT_EQ(buffer->data()[i], 0);
  buffer->data()[99] = 1;
  EXPECT_FALSE(watch.expired());
  buffer = nullptr;
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace rubato
