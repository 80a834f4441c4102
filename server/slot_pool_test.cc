#include "server/slot_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/array_alignment.h"
#include "common/clock.h"

namespace rubato::server {
namespace {

constexpr int64_t kArray = 100 * sizeof(float);

TEST(SlotPoolTest, WhatNobodyHoldsIsTakenAgain) {
  const auto pool = SlotPool::Create();
  FloatBuffer::Ptr array = pool->Take(100);
  const float* const data = array->data();
  FloatBuffer::Ptr checkpoint = array;
  array = pool->Take(100);
  EXPECT_NE(array->data(), data);
  EXPECT_EQ(pool->bytes(), 2 * kArray);
  checkpoint = nullptr;
  EXPECT_NE(pool->Take(50), nullptr);
  EXPECT_EQ(pool->bytes(), 2 * kArray + kArray / 2) << "of another size";
  EXPECT_EQ(pool->Take(100)->data(), data);
}

TEST(SlotPoolTest, AnArrayThatIsTakenAgainHasNoChecksum) {
  const auto pool = SlotPool::Create();
  pool->Take(100)->NoteCrc32(0);
  EXPECT_EQ(pool->Take(100)->crc32(), std::nullopt);
  EXPECT_EQ(pool->bytes(), kArray) << "the same array";
}

TEST(SlotPoolTest, TakesWhatIsReserved) {
  const auto pool = SlotPool::Create();
  pool->Reserve(100, 2);
  EXPECT_EQ(pool->bytes(), 2 * kArray);
  const FloatBuffer::Ptr first = pool->Take(100), second = pool->Take(100);
  EXPECT_EQ(pool->bytes(), 2 * kArray);
  const FloatBuffer::Ptr third = pool->Take(100);
  EXPECT_EQ(pool->bytes(), 3 * kArray);
}

TEST(SlotPoolTest, ArraysOutliveThePool) {
  auto pool = SlotPool::Create();
  const FloatBuffer::Ptr array = pool->Take(100);
  pool = nullptr;
  array->data()[99] = 1;
}

TEST(SlotPoolTest, LargeArraysBeginAtADisksBlockAndShareNothing) {
  auto pool = SlotPool::Create();
  // Some of them fill blocks of memory, and the last is larger than one.
  const std::vector<int64_t> sizes = {16 << 10, (16 << 10) + 1, 10 << 20, 5 << 20, 5 << 20, 20 << 20};
  std::vector<FloatBuffer::Ptr> arrays;
  for (const int64_t size : sizes) {
    FloatBuffer::Ptr array = pool->Take(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array->data()) % kDiskBlock, 0u);
    EXPECT_EQ(array->size(), size);
    EXPECT_EQ(std::count(array->data(), array->data() + size, 0.0f), size);
    std::fill_n(array->data(), size, static_cast<float>(arrays.size()) + 1);
    arrays.push_back(std::move(array));
  }
  pool = nullptr;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const float* const data = arrays[i]->data();
    EXPECT_EQ(std::count(data, data + arrays[i]->size(), static_cast<float>(i) + 1), arrays[i]->size());
  }
}

TEST(SlotPoolTest, AnUpdateWaitsForWhatACheckpointLetsGoOf) {
  const auto pool = SlotPool::Create();
  FloatBuffer::Ptr held = pool->Take(100);
  pool->BeginReturns();
  std::thread writer([&held] {
    RealClock().Sleep(absl::Milliseconds(20));
    held = nullptr;
  });
  EXPECT_NE(pool->Take(100), nullptr);
  writer.join();
  EXPECT_EQ(pool->bytes(), kArray);
}

TEST(SlotPoolTest, NoUpdateWaitsWhenNothingIsWrittenAnyMore) {
  const auto pool = SlotPool::Create();
  const FloatBuffer::Ptr held = pool->Take(100);
  pool->BeginReturns();
  std::thread writer([&pool] {
    RealClock().Sleep(absl::Milliseconds(20));
    pool->EndReturns();
  });
  EXPECT_NE(pool->Take(100), nullptr);
  writer.join();
  EXPECT_EQ(pool->bytes(), 2 * kArray);
}

TEST(SlotPoolTest, AllUpdatesTogetherWaitNoLongerThanOnce) {
  const auto pool = SlotPool::Create();
  const FloatBuffer::Ptr held = pool->Take(100);
  pool->BeginReturns();
  const RealClock clock;
  const absl::Time begun = clock.Now();
  const FloatBuffer::Ptr first = pool->Take(100);
  EXPECT_GE(clock.Now() - begun, SlotPool::kLongestWait - absl::Milliseconds(10));
  EXPECT_EQ(pool->bytes(), 2 * kArray);
  const absl::Time then = clock.Now();
  for (int i = 0; i < 100; ++i) EXPECT_NE(pool->Take(100 + i), nullptr);
  EXPECT_LT(clock.Now() - then, 50 * SlotPool::kLongestWait) << "a wait for each would be twice as long";
}

}  // namespace
}  // namespace rubato::server
