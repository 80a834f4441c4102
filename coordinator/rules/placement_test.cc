#include "coordinator/rules/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace rubato::coordinator {
namespace {

ModelSpec Model(const std::vector<Shape>& shapes) {
  ModelSpec model;
  for (const Shape& shape : shapes) model.tensors.push_back({.name = "t", .shape = shape, .initializer = v1::ZEROS});
  return model;
}

std::vector<v1::ChunkPlacement> Split(const std::vector<Shape>& shapes, uint64_t chunk_bytes) {
  auto chunks = SplitIntoChunks(Model(shapes), chunk_bytes);
  EXPECT_TRUE(chunks.ok()) << chunks.status();
  return chunks.ok() ? *chunks : std::vector<v1::ChunkPlacement>();
}

TEST(SplitIntoChunks, CoversEveryElementOnceInModelOrder) {
  auto chunks = Split({{1000, 33}, {7}, {16384}}, 4096);
  int64_t next = 0;
  uint32_t tensor = 0;
  const int64_t sizes[] = {33000, 7, 16384};
  for (const v1::ChunkPlacement& chunk : chunks) {
    if (chunk.tensor() != tensor) {
      EXPECT_EQ(next, sizes[tensor]);
      EXPECT_EQ(chunk.tensor(), ++tensor);
      next = 0;
    }
    EXPECT_EQ(chunk.offset(), next);
    EXPECT_EQ(chunk.offset() % 16, 0);
    EXPECT_GT(chunk.length(), 0);
    EXPECT_LE(chunk.length() * 4, 4096);
    next += chunk.length();
  }
  EXPECT_EQ(tensor, 2u);
  EXPECT_EQ(next, sizes[2]);
}

TEST(SplitIntoChunks, KeepsASmallTensorWhole) {
  auto chunks = Split({{1024}}, 4096);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].length(), 1024);
}

TEST(SplitIntoChunks, RefusesTinyChunksAndEmptyTensors) {
  EXPECT_FALSE(SplitIntoChunks(Model({{4}}), 32).ok());
  EXPECT_FALSE(SplitIntoChunks(Model({{0}}), 4096).ok());
}

std::map<std::pair<uint32_t, uint32_t>, int64_t> Loads(const std::vector<v1::ChunkPlacement>& chunks) {
  std::map<std::pair<uint32_t, uint32_t>, int64_t> loads;
  for (const v1::ChunkPlacement& chunk : chunks) loads[{chunk.server(), chunk.partition()}] += chunk.length();
  return loads;
}

TEST(PlaceChunks, BalancesOneHugeTensor) {
  auto chunks = Split({{64, 1024, 1024}}, 4 << 20);
  PlaceChunks({0, 1, 2}, 2, &chunks);
  auto loads = Loads(chunks);
  ASSERT_EQ(loads.size(), 6u);
  auto [low, high] =
      std::minmax_element(loads.begin(), loads.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_LE(high->second - low->second, 1 << 20);
}

TEST(PlaceChunks, SpreadsFewChunksOverServersBeforePartitions) {
  auto chunks = Split({{100}, {100}}, 4096);
  PlaceChunks({0, 1}, 8, &chunks);
  EXPECT_NE(chunks[0].server(), chunks[1].server());
}

TEST(PlaceChunks, IsDeterministic) {
  auto a = Split({{512, 784}, {512}, {512, 512}, {512}, {10, 512}, {10}}, 256 << 10);
  auto b = a;
  PlaceChunks({0, 1}, 2, &a);
  PlaceChunks({0, 1}, 2, &b);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].server(), b[i].server());
    EXPECT_EQ(a[i].partition(), b[i].partition());
  }
}

TEST(PlaceChunks, ShardsOfTablesComeLastAndAreDealtToAllPlaces) {
  ModelSpec model = Model({{100}, {50}});
  for (const uint32_t shards : {8u, 4u}) model.tables.emplace_back().config.set_shards(shards);
  auto chunks = SplitIntoChunks(model, 4096);
  ASSERT_TRUE(chunks.ok()) << chunks.status();
  ASSERT_EQ(chunks->size(), 2u + 8 + 4);
  for (size_t i = 2; i < chunks->size(); ++i) {
    EXPECT_EQ((*chunks)[i].length(), 0);
    EXPECT_EQ((*chunks)[i].tensor(), i < 10 ? 2u : 3u) << "tables are numbered behind tensors";
    EXPECT_EQ((*chunks)[i].offset(), static_cast<int64_t>(i < 10 ? i - 2 : i - 10));
  }
  PlaceChunks({3, 5, 9}, 2, &*chunks);
  std::map<std::pair<uint32_t, uint32_t>, int> shards;
  for (size_t i = 2; i < chunks->size(); ++i) ++shards[{(*chunks)[i].server(), (*chunks)[i].partition()}];
  EXPECT_EQ(shards.size(), 6u);
  for (const auto& [place, count] : shards) EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace rubato::coordinator
