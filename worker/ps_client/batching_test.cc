#include "worker/ps_client/batching.h"

#include <gtest/gtest.h>

namespace rubato::worker {
namespace {

void AddChunk(v1::JobDescription& job, uint32_t tensor, int64_t length, uint32_t server, uint32_t partition = 0) {
  v1::ChunkPlacement* chunk = job.add_chunks();
  chunk->set_tensor(tensor);
  chunk->set_length(length);
  chunk->set_server(server);
  chunk->set_partition(partition);
}

std::vector<int> BatchesOf(const Batching& batching, int tensor) {
  std::vector<int> batches;
  for (const PartOfTensor& part : batching.parts_of_tensor[tensor]) batches.push_back(part.batch);
  return batches;
}

TEST(BatchingTest, SaysWhatABatchHoldsOfATensor) {
  v1::JobDescription job;
  // Dealt to two servers.
  for (int i = 0; i < 6; ++i) {
    AddChunk(job, 0, 10, static_cast<uint32_t>(i % 2));
    job.mutable_chunks(i)->set_offset(10 * i);
  }
  const Batching batching = MakeBatches(job, 1, 2 * 40);
  std::vector<std::pair<int64_t, int64_t>> held;
  for (const PartOfTensor& part : batching.parts_of_tensor[0]) held.push_back({part.begin, part.end});
  EXPECT_EQ(held, (std::vector<std::pair<int64_t, int64_t>>{{0, 30}, {10, 40}, {40, 50}, {50, 60}}));
}

TEST(BatchingTest, FusesSmallNeighboursOfOnePartition) {
  v1::JobDescription job;
  AddChunk(job, 0, 10, 0);
  AddChunk(job, 1, 10, 1);
  AddChunk(job, 2, 10, 0);
  Batching batching = MakeBatches(job, 3, 640);
  ASSERT_EQ(batching.batches.size(), 2u);
  EXPECT_EQ(batching.batches[0].chunks, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(batching.batches[1].chunks, (std::vector<uint32_t>{1}));
  EXPECT_EQ(BatchesOf(batching, 2), (std::vector<int>{0}));
  EXPECT_EQ(batching.tensors_of_batch[0], (std::vector<int>{0, 2}));
}

TEST(BatchingTest, StartsANewMessageAtTheLimit) {
  v1::JobDescription job;
  AddChunk(job, 0, 15, 0);
  AddChunk(job, 1, 6, 0);
  EXPECT_EQ(MakeBatches(job, 2, 80).batches.size(), 2u);
}

TEST(BatchingTest, SendsLargerMessagesWhereTensorsAreReadInPlace) {
  v1::JobDescription job;
  for (uint32_t server : {0, 1, 0, 1}) AddChunk(job, 0, 300, server);
  // Not small, wherever it goes.
  AddChunk(job, 1, 30, 1);
  Batching batching = MakeBatches(job, 2, 1600, [](uint32_t server) { return server == 1; });
  ASSERT_EQ(batching.batches.size(), 4u);
  EXPECT_EQ(batching.batches[0].chunks, (std::vector<uint32_t>{0}));
  EXPECT_EQ(batching.batches[1].chunks, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(batching.batches[2].chunks, (std::vector<uint32_t>{2}));
  EXPECT_EQ(batching.batches[3].chunks, (std::vector<uint32_t>{4}));
}

TEST(BatchingTest, SendsALargeChunkAlone) {
  v1::JobDescription job;
  AddChunk(job, 0, 1000, 0);
  AddChunk(job, 0, 1000, 0);
  AddChunk(job, 1, 1, 0);
  Batching batching = MakeBatches(job, 2, 80);
  ASSERT_EQ(batching.batches.size(), 3u);
  EXPECT_EQ(BatchesOf(batching, 0), (std::vector<int>{0, 1}));
}

TEST(BatchingTest, ALargeTensorDoesNotWaitForAnother) {
  v1::JobDescription job;
  AddChunk(job, 0, 400, 0);
  AddChunk(job, 0, 400, 0);
  AddChunk(job, 1, 20, 0);
  AddChunk(job, 2, 400, 0);
  Batching batching = MakeBatches(job, 3, 6400);
  ASSERT_EQ(batching.batches.size(), 2u);
  EXPECT_EQ(batching.batches[0].chunks, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(batching.batches[1].chunks, (std::vector<uint32_t>{3}));
}

TEST(BatchingTest, KeepsPartitionsApart) {
  v1::JobDescription job;
  AddChunk(job, 0, 1, 0, 0);
  AddChunk(job, 1, 1, 0, 1);
  EXPECT_EQ(MakeBatches(job, 2, 80).batches.size(), 2u);
}

}  // namespace
}  // namespace rubato::worker
