#include "common/placement_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace rubato {
namespace {

using testing::HasSubstr;

// A tensor of 6 elements, one of 2, and a table of two shards.
ModelSpec Model() {
  ModelSpec model;
  model.tensors.resize(2);
  model.tensors[0].shape = {2, 3};
  model.tensors[1].shape = {2};
  model.tables.resize(1);
  model.tables[0].config.set_shards(2);
  return model;
}

v1::JobDescription Job() {
  v1::JobDescription job;
  const auto add = [&job](uint32_t tensor, int64_t offset, int64_t length, uint32_t partition) {
    v1::ChunkPlacement* chunk = job.add_chunks();
    chunk->set_tensor(tensor);
    chunk->set_offset(offset);
    chunk->set_length(length);
    chunk->set_partition(partition);
  };
  add(0, 0, 4, 0);
  add(0, 4, 2, 1);
  add(1, 0, 2, 0);
  add(2, 0, 0, 0);
  add(2, 1, 0, 1);
  return job;
}

std::string Problem(const v1::JobDescription& job) {
  const absl::Status status = CheckPlacements(job, Model(), 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(PlacementCheckTest, TakesEveryElementAndShardOnce) {
  const absl::Status status = CheckPlacements(Job(), Model(), 2);
  EXPECT_TRUE(status.ok()) << status;
}

TEST(PlacementCheckTest, NamesTheFirstChunkThatIsWrong) {
  v1::JobDescription job = Job();
  job.mutable_chunks(1)->set_offset(3);  // Element 3 twice.
  EXPECT_EQ(Problem(job), "job.chunks[1].offset: value 3; expected 4");
  job = Job();
  job.mutable_chunks(1)->set_length(3);  // Beyond its tensor.
  EXPECT_EQ(Problem(job), "job.chunks[1].length: value 3; allowed: 1 to 2");
  job = Job();
  job.mutable_chunks(0)->set_length(-4);
  EXPECT_EQ(Problem(job), "job.chunks[0].length: value -4; allowed: 1 to 6");
  job = Job();
  job.mutable_chunks(2)->set_tensor(7);
  EXPECT_EQ(Problem(job), "job.chunks[2].tensor: value 7; expected 1");
  job = Job();
  job.mutable_chunks(4)->set_offset(0);  // A shard twice.
  EXPECT_EQ(Problem(job), "job.chunks[4].offset: value 0; expected 1");
  job = Job();
  job.mutable_chunks(3)->set_length(1);
  EXPECT_EQ(Problem(job), "job.chunks[3].length: value 1; allowed: 0");
  job = Job();
  job.mutable_chunks(2)->set_partition(2);
  EXPECT_EQ(Problem(job), "job.chunks[2].partition: value 2; allowed: 0 to 1");
}

TEST(PlacementCheckTest, NamesWhatIsMissingOrTooMuch) {
  v1::JobDescription job = Job();
  job.mutable_chunks()->RemoveLast();
  EXPECT_THAT(Problem(job), HasSubstr("4 of them, which end in the middle of the model, at tensor 2"));
  job = Job();
  *job.add_chunks() = job.chunks(4);
  EXPECT_EQ(Problem(job), "job.chunks[5]: one more than the model has");
  EXPECT_THAT(Problem(v1::JobDescription()), HasSubstr("at tensor 0"));
}

}  // namespace
}  // namespace rubato
