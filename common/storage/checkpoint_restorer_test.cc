#include "common/storage/checkpoint_restorer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "common/storage/cut_record.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// The weights of "a" [10] are 0 to 9 and its one slot 100 to 109, on two servers, split at 4.
class CheckpointRestorerTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = JoinPath(testing::TempDir(), std::string("checkpoint_restorer_test_") +
                                                  testing::UnitTest::GetInstance()->current_test_info()->name());
    std::iota(weights_.begin(), weights_.end(), 0);
    std::iota(slots_.begin(), slots_.end(), 100);
    Write(0, 0, 4, 7);
    Write(1, 4, 10, 8);
  }

  void Write(uint32_t server, int64_t begin, int64_t end, int64_t updates, uint64_t cut = 0,
             v1::TaskId::Role role = v1::TaskId::SERVER) {
    v1::TaskId task;
    task.set_role(role);
    task.set_index(server);
    auto writer = CheckpointWriter::Create(directory_, task);
    ASSERT_TRUE(writer.ok()) << writer.status();
    CheckpointChunk chunk;
    chunk.record.set_chunk(server);
    chunk.record.set_tensor("a");
    chunk.record.add_shape(10);
    chunk.record.set_offset(begin);
    chunk.record.set_length(end - begin);
    chunk.record.set_updates(updates);
    chunk.record.set_version(10 * updates);
    chunk.values = weights_.data() + begin;
    if (role == v1::TaskId::SERVER) chunk.slots = {slots_.data() + begin};
    ASSERT_TRUE((*writer)->Add(chunk).ok());
    v1::CheckpointManifest manifest;
    manifest.set_servers(2);
    if (cut != 0) {
      manifest.mutable_cut()->set_id(cut);
      manifest.mutable_cut()->set_name("step150");
    }
    ASSERT_TRUE((*writer)->Finish(manifest).ok());
  }

  void Add(int64_t begin, int64_t end, int slots = 1, std::vector<int64_t> shape = {10}) {
    std::vector<float*> into;
    for (int slot = 0; slot < slots; ++slot) into.push_back(read_slots_.data() + begin);
    restorer_.Add({"a", std::move(shape), begin, end - begin, read_.data() + begin, into});
  }

  void ExpectRefusal(const std::string& text) {
    const absl::Status status = restorer_.ReadServers(directory_);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find(text), absl::string_view::npos) << status;
  }

  std::string directory_;
  std::vector<float> weights_ = std::vector<float>(10);
  std::vector<float> slots_ = std::vector<float>(10);
  std::vector<float> read_ = std::vector<float>(10, -1);
  std::vector<float> read_slots_ = std::vector<float>(10, -1);
  CheckpointRestorer restorer_;
};

TEST_F(CheckpointRestorerTest, FillsOtherSlicesThanWereWritten) {
  Add(0, 3);
  Add(3, 10);
  ASSERT_TRUE(restorer_.ReadServers(directory_).ok());
  EXPECT_EQ(read_, weights_);
  EXPECT_EQ(read_slots_, slots_);
  EXPECT_EQ(restorer_.slices()[0].updates, 7);
  EXPECT_EQ(restorer_.slices()[1].updates, 8);
}

TEST_F(CheckpointRestorerTest, TellsTheVersionOfAChunkOrTheHighestOfSeveral) {
  Add(1, 4);
  Add(4, 10);
  ASSERT_TRUE(restorer_.ReadServers(directory_).ok());
  EXPECT_EQ(restorer_.slices()[0].version, 70);
  EXPECT_EQ(restorer_.slices()[1].version, 80);
  restorer_ = {};
  Add(0, 10);
  ASSERT_TRUE(restorer_.ReadServers(directory_).ok());
  EXPECT_EQ(restorer_.slices()[0].version, 80);
}

TEST_F(CheckpointRestorerTest, ReadsTheCutThatIsWantedAndNoOther) {
  Write(0, 0, 4, 7, 3);
  Write(1, 4, 10, 8, 3);
  Add(0, 10);
  const absl::Status other = restorer_.ReadServers(directory_, 4);
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(other.message().find("server-0.manifest: is of cut 3 (step150), cut 4 is wanted"), absl::string_view::npos)
      << other;
  ASSERT_TRUE(restorer_.ReadServers(directory_, 3).ok());
  EXPECT_EQ(read_, weights_);
  Write(0, 0, 4, 7, 4);
  restorer_ = {};
  Add(0, 10);
  const absl::Status mixed = restorer_.ReadServers(directory_, 3);
  EXPECT_EQ(mixed.code(), absl::StatusCode::kFailedPrecondition) << mixed;
  EXPECT_NE(mixed.message().find("server-0.manifest: is of cut 4 (step150)"), absl::string_view::npos) << mixed;
}

TEST_F(CheckpointRestorerTest, APartThatIsMissingMattersWhereSomethingIsInIt) {
  Write(0, 0, 4, 7, 3);
  ASSERT_TRUE(RemoveFile(JoinPath(directory_, "server-1.manifest")).ok());
  Add(1, 4);
  EXPECT_TRUE(restorer_.ReadServers(directory_, 3).ok());
  restorer_ = {};
  Add(1, 5);
  const absl::Status status = restorer_.ReadServers(directory_, 3);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("server 1 of the checkpoint's 2"), absl::string_view::npos) << status;
}

TEST_F(CheckpointRestorerTest, WithoutACutAPartMayBeMissingIfTheCheckpointIsKnownToBeComplete) {
  ASSERT_TRUE(RemoveFile(JoinPath(directory_, "server-1.manifest")).ok());
  Add(1, 4);
  EXPECT_EQ(restorer_.ReadServers(directory_).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(restorer_.ReadServers(directory_, 0, /*is_complete=*/true).ok());
  EXPECT_EQ(read_[1], weights_[1]);
}

TEST_F(CheckpointRestorerTest, LeavesOutWhatNobodyAskedFor) {
  Add(5, 7);
  ASSERT_TRUE(restorer_.ReadServers(directory_).ok());
  EXPECT_EQ(read_, (std::vector<float>{-1, -1, -1, -1, -1, 5, 6, -1, -1, -1}));
}

TEST_F(CheckpointRestorerTest, AnotherShapeIsNamed) {
  Add(0, 10, 1, {2, 5});
  ExpectRefusal("a: shape [10], the job's is [2, 5]");
}

TEST_F(CheckpointRestorerTest, AnotherOptimizerIsNamed) {
  Add(0, 10, 2);
  ExpectRefusal("a: 1 optimizer slots, the job's optimizer.algorithm has 2");
}

TEST_F(CheckpointRestorerTest, MissingTensorIsNamed) {
  restorer_.Add({"b", {3}, 0, 3, read_.data(), {}});
  ExpectRefusal("of b, elements 0 to 2, it has 0 of 3");
}

TEST_F(CheckpointRestorerTest, MissingPartIsNotFound) {
  Add(0, 10);
  ASSERT_TRUE(RemoveFile(JoinPath(directory_, "server-1.manifest")).ok());
  EXPECT_EQ(restorer_.ReadServers(directory_).code(), absl::StatusCode::kNotFound);
}

TEST_F(CheckpointRestorerTest, ASafetensorsFileHasWeightsAndNoState) {
  const std::string path = JoinPath(directory_, "model.safetensors");
  const std::string header = R"({"a":{"dtype":"F32","shape":[10],"data_offsets":[0,40]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(weights_.data()), sizeof(float) * weights_.size());
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  Add(0, 3);
  Add(3, 10);
  ASSERT_TRUE(restorer_.ReadSafetensors(path).ok());
  EXPECT_EQ(read_, weights_);
  EXPECT_EQ(read_slots_, std::vector<float>(10, -1));
  EXPECT_EQ(restorer_.slices()[1].updates, 0);
}

}  // namespace
}  // namespace rubato
