#include "worker/ps_client/residual_files.h"

#include <gtest/gtest.h>

#include "common/storage/file.h"

namespace rubato::worker {
namespace {

// A tensor "a.weight" [3, 4] in chunks of `length` elements, and a small one whose codec keeps nothing back.
class ResidualFilesTest : public testing::Test {
 protected:
  ResidualFilesTest() {
    spec_.tensors.resize(2);
    spec_.tensors[0].name = "a.weight";
    spec_.tensors[0].shape = {3, 4};
    spec_.tensors[1].name = "a.bias";
    spec_.tensors[1].shape = {2};
    task_.set_role(v1::TaskId::WORKER);
    task_.set_index(1);
    config_.set_name("job");
    config_.mutable_cluster()->set_servers(2);
    directory_ = JoinPath(testing::TempDir(), std::string("residual_files_test_") +
                                                  testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  static v1::JobDescription InChunksOf(int64_t length) {
    v1::JobDescription job;
    for (int64_t offset = 0; offset < 12; offset += length) {
      v1::ChunkPlacement* chunk = job.add_chunks();
      chunk->set_offset(offset);
      chunk->set_length(std::min(length, 12 - offset));
    }
    job.add_chunks()->set_tensor(1);
    job.mutable_chunks(job.chunks_size() - 1)->set_length(2);
    return job;
  }

  // One residual per chunk: elements first, first + 1, ... over the whole tensor.
  static std::vector<std::vector<float>> Kept(const v1::JobDescription& job, float first) {
    std::vector<std::vector<float>> kept(job.chunks_size());
    for (int i = 0; i + 1 < job.chunks_size(); ++i) {
      for (int64_t e = 0; e < job.chunks(i).length(); ++e) kept[i].push_back(first++);
    }
    return kept;
  }

  static Residuals Pointers(std::vector<std::vector<float>>& kept) {
    Residuals residuals;
    for (std::vector<float>& residual : kept) residuals.push_back(&residual);
    return residuals;
  }

  absl::StatusOr<bool> Write(int64_t chunk_length) {
    const v1::JobDescription job = InChunksOf(chunk_length);
    std::vector<std::vector<float>> kept = Kept(job, 1);
    return WriteResiduals(directory_, task_, config_, spec_, job, Pointers(kept));
  }

  ModelSpec spec_;
  v1::TaskId task_;
  v1::JobConfig config_;
  std::string directory_;
};

TEST_F(ResidualFilesTest, ComeBackInChunksOfAnotherSize) {
  ASSERT_TRUE(*Write(5));
  const v1::JobDescription job = InChunksOf(7);
  std::vector<std::vector<float>> kept = Kept(job, -100);
  const absl::StatusOr<bool> read = ReadResiduals(directory_, 1, spec_, job, Pointers(kept));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read);
  EXPECT_EQ(kept, Kept(job, 1));
}

TEST_F(ResidualFilesTest, WorkerThatWroteNothingChangesNothing) {
  ASSERT_TRUE(*Write(5));
  const v1::JobDescription job = InChunksOf(5);
  std::vector<std::vector<float>> kept = Kept(job, -100);
  EXPECT_FALSE(*ReadResiduals(directory_, 0, spec_, job, Pointers(kept)));
  EXPECT_EQ(kept, Kept(job, -100));
}

TEST_F(ResidualFilesTest, NothingIsWrittenWhereNothingIsKept) {
  const v1::JobDescription job = InChunksOf(5);
  std::vector<std::vector<float>> none(job.chunks_size());
  EXPECT_FALSE(*WriteResiduals(directory_, task_, config_, spec_, job, Pointers(none)));
  EXPECT_FALSE(FileExists(JoinPath(directory_, "worker-1.manifest")));
}

TEST_F(ResidualFilesTest, AnotherShapeIsNamed) {
  ASSERT_TRUE(*Write(5));
  spec_.tensors[0].shape = {4, 3};
  const v1::JobDescription job = InChunksOf(5);
  std::vector<std::vector<float>> kept = Kept(job, 0);
  const absl::Status status = ReadResiduals(directory_, 1, spec_, job, Pointers(kept)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("a.weight: shape [3, 4], the job's is [4, 3]"), absl::string_view::npos) << status;
}

TEST_F(ResidualFilesTest, ASafetensorsFileHasNone) {
  const v1::JobDescription job = InChunksOf(5);
  std::vector<std::vector<float>> kept = Kept(job, 7);
  const std::vector<std::vector<float>> before = kept;
  absl::StatusOr<bool> read = ReadResiduals("/any/model.safetensors", 1, spec_, job, Pointers(kept));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(*read);
  EXPECT_EQ(kept, before);
}

}  // namespace
}  // namespace rubato::worker
