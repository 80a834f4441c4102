#include "worker/ps_client/worker_part.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/storage/file.h"

namespace rubato::worker {
namespace {

// A tensor "a.weight" [3, 4] in chunks of some length, with a residual, a slot, or both.
class WorkerPartTest : public testing::Test {
 protected:
  WorkerPartTest() {
    task_.set_role(v1::TaskId::WORKER);
    task_.set_index(1);
    cut_.set_id(7);
    cut_.set_name("step40");
    directory_ = JoinPath(testing::TempDir(), std::string("worker_part_test_") +
                                                  testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  // Residuals have the elements first, first + 1, ... over the whole tensor, slot number i first + 100 (i + 1), ...
  static WorkerPart InChunksOf(int64_t length, float first, bool residual = true, int slots = 0) {
    WorkerPart part;
    for (int64_t offset = 0; offset < 12; offset += length) {
      WorkerPart::Chunk& chunk = part.chunks.emplace_back();
      chunk.record.set_chunk(static_cast<uint32_t>(part.chunks.size() - 1));
      chunk.record.set_tensor("a.weight");
      chunk.record.add_shape(3);
      chunk.record.add_shape(4);
      chunk.record.set_offset(offset);
      chunk.record.set_length(std::min(length, 12 - offset));
      const auto count = [&](float from) {
        std::vector<float> values;
        for (int64_t i = 0; i < chunk.record.length(); ++i) values.push_back(from + static_cast<float>(offset + i));
        return values;
      };
      if (residual) chunk.residual = count(first);
      for (int slot = 0; slot < slots; ++slot) {
        chunk.slots.push_back(count(first + 100 * static_cast<float>(slot + 1)));
      }
      if (slots > 0) chunk.record.set_updates(5);
    }
    return part;
  }

  static void ExpectSame(const WorkerPart& read, const WorkerPart& expected) {
    ASSERT_EQ(read.chunks.size(), expected.chunks.size());
    for (size_t i = 0; i < read.chunks.size(); ++i) {
      EXPECT_EQ(read.chunks[i].residual, expected.chunks[i].residual);
      EXPECT_EQ(read.chunks[i].slots, expected.chunks[i].slots);
      EXPECT_EQ(read.chunks[i].record.updates(), expected.chunks[i].record.updates());
    }
  }

  absl::Status Write(const WorkerPart& part) {
    v1::CheckpointManifest manifest;
    manifest.set_job_name("job");
    manifest.set_servers(2);
    *manifest.mutable_cut() = cut_;
    return WriteWorkerPart(directory_, task_, part, manifest);
  }

  v1::TaskId task_;
  v1::Cut cut_;
  std::string directory_;
};

TEST_F(WorkerPartTest, ComesBackInChunksOfAnotherSize) {
  ASSERT_TRUE(Write(InChunksOf(5, 1, true, 2)).ok());
  WorkerPart part = InChunksOf(7, -100, true, 2);
  const absl::StatusOr<bool> read = ReadWorkerPart(directory_, 1, &cut_, &part);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read);
  ExpectSame(part, InChunksOf(7, 1, true, 2));
}

TEST_F(WorkerPartTest, SlotsComeBackWithoutAResidual) {
  ASSERT_TRUE(Write(InChunksOf(5, 1, false, 1)).ok());
  WorkerPart part = InChunksOf(5, -100, false, 1);
  EXPECT_TRUE(*ReadWorkerPart(directory_, 1, &cut_, &part));
  ExpectSame(part, InChunksOf(5, 1, false, 1));
  // For whom a residual is all that there can be, there was none.
  WorkerPart residual = InChunksOf(5, -100);
  EXPECT_TRUE(*ReadWorkerPart(directory_, 1, nullptr, &residual));
  for (const WorkerPart::Chunk& chunk : residual.chunks) {
    EXPECT_EQ(chunk.residual, std::vector<float>(chunk.residual.size()));
  }
}

TEST_F(WorkerPartTest, TheLossScaleAloneIsAPartToo) {
  WorkerPart part;
  EXPECT_TRUE(part.empty());
  part.state.set_loss_scale(1024);
  part.state.set_loss_scale_steps(17);
  EXPECT_FALSE(part.empty());
  ASSERT_TRUE(Write(part).ok());
  WorkerPart read;
  EXPECT_TRUE(*ReadWorkerPart(directory_, 1, &cut_, &read));
  EXPECT_EQ(read.state.loss_scale(), 1024);
  EXPECT_EQ(read.state.loss_scale_steps(), 17);
  // A job with residuals that starts from it begins with none.
  WorkerPart residual = InChunksOf(5, -100);
  EXPECT_FALSE(*ReadWorkerPart(directory_, 1, nullptr, &residual));
  ExpectSame(residual, InChunksOf(5, -100));
}

TEST_F(WorkerPartTest, AWorkerThatWroteNothingChangesNothing) {
  ASSERT_TRUE(Write(InChunksOf(5, 1)).ok());
  WorkerPart part = InChunksOf(5, -100);
  EXPECT_FALSE(*ReadWorkerPart(directory_, 0, &cut_, &part));
  ExpectSame(part, InChunksOf(5, -100));
}

TEST_F(WorkerPartTest, APartOfAnotherCutIsNone) {
  ASSERT_TRUE(Write(InChunksOf(5, 1)).ok());
  cut_.set_id(8);
  WorkerPart part = InChunksOf(5, -100);
  EXPECT_FALSE(*ReadWorkerPart(directory_, 1, &cut_, &part));
  ExpectSame(part, InChunksOf(5, -100));
}

TEST_F(WorkerPartTest, AnotherShapeIsNamed) {
  ASSERT_TRUE(Write(InChunksOf(5, 1)).ok());
  WorkerPart part = InChunksOf(5, 0);
  for (WorkerPart::Chunk& chunk : part.chunks) chunk.record.mutable_shape()->SwapElements(0, 1);
  const absl::Status status = ReadWorkerPart(directory_, 1, nullptr, &part).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("a.weight: shape [3, 4], the job's is [4, 3]"), absl::string_view::npos) << status;
}

TEST_F(WorkerPartTest, WhatIsMissingIsNamed) {
  WorkerPart whole = InChunksOf(5, 1);
  whole.chunks.pop_back();
  ASSERT_TRUE(Write(whole).ok());
  WorkerPart part = InChunksOf(12, 0);
  const absl::Status status = ReadWorkerPart(directory_, 1, &cut_, &part).status();
  EXPECT_NE(status.message().find("of a.weight, elements 0 to 11, it has 10 of 12"), absl::string_view::npos) << status;
}

TEST_F(WorkerPartTest, OtherSlotsAreNamed) {
  ASSERT_TRUE(Write(InChunksOf(5, 1, true, 1)).ok());
  WorkerPart part = InChunksOf(5, 0, true, 2);
  const absl::Status status = ReadWorkerPart(directory_, 1, &cut_, &part).status();
  EXPECT_NE(status.message().find("a.weight: 1 optimizer slots, the job's optimizer.algorithm has 2"),
            absl::string_view::npos)
      << status;
}

TEST_F(WorkerPartTest, ADamagedPartIsAnError) {
  ASSERT_TRUE(Write(InChunksOf(5, 1)).ok());
  const std::string path = JoinPath(directory_, "worker-1.data");
  std::string bytes = *ReadFile(path);
  bytes[3] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  WorkerPart part = InChunksOf(5, 0);
  EXPECT_EQ(ReadWorkerPart(directory_, 1, &cut_, &part).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(WorkerPartTest, ASafetensorsFileHasNone) {
  WorkerPart part = InChunksOf(5, 7);
  const absl::StatusOr<bool> read = ReadWorkerPart("/any/model.safetensors", 1, nullptr, &part);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(*read);
  ExpectSame(part, InChunksOf(5, 7));
}

}  // namespace
}  // namespace rubato::worker
