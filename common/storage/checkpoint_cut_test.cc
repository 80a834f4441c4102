// Parts of checkpoints that were cut from a job that trains: which ones belong together, and which checkpoints are
// whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "common/storage/checkpoint.h"
#include "common/storage/checkpoint_list.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

class CheckpointCutTest : public testing::Test {
 protected:
  void SetUp() override {
    checkpoints_ = JoinPath(testing::TempDir(), std::string("checkpoint_cut_test_") +
                                                    testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(checkpoints_);
    directory_ = JoinPath(checkpoints_, "step150");
  }

  // Server `server` of `indices` has element number `place` of "a", a tensor of as many elements.
  void Write(const std::string& directory, uint32_t server, const std::vector<uint32_t>& indices, uint64_t cut) {
    v1::TaskId task;
    task.set_role(v1::TaskId::SERVER);
    task.set_index(server);
    auto writer = CheckpointWriter::Create(directory, task);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const auto place = std::find(indices.begin(), indices.end(), server) - indices.begin();
    const float value = static_cast<float>(server);
    CheckpointChunk chunk;
    chunk.record.set_chunk(static_cast<uint32_t>(place));
    chunk.record.set_tensor("a");
    chunk.record.add_shape(static_cast<int64_t>(indices.size()));
    chunk.record.set_offset(place);
    chunk.record.set_length(1);
    chunk.values = &value;
    ASSERT_TRUE((*writer)->Add(chunk).ok());
    v1::CheckpointManifest manifest;
    manifest.set_job_name(job_);
    manifest.set_servers(static_cast<uint32_t>(indices.size()));
    if (cut != 0) {
      *manifest.mutable_cut() = Cut(cut);
      manifest.mutable_server_indices()->Add(indices.begin(), indices.end());
    }
    ASSERT_TRUE((*writer)->Finish(manifest).ok());
  }
  static v1::Cut Cut(uint64_t id) {
    v1::Cut cut;
    cut.set_id(id);
    cut.set_name("step150");
    return cut;
  }
  void WriteRecord(const std::string& directory, uint64_t cut, const std::vector<uint32_t>& servers) {
    v1::CutRecord record;
    record.set_format_version(kCutFormatVersion);
    *record.mutable_cut() = Cut(cut);
    record.mutable_servers()->Add(servers.begin(), servers.end());
    ASSERT_TRUE(MakeDirectories(directory).ok());
    ASSERT_TRUE(WriteFileAtomically(JoinPath(directory, kCutRecordName), record.SerializeAsString()).ok());
  }
  void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& text) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(text), absl::string_view::npos) << status;
  }

  using Indices = std::vector<uint32_t>;
  std::string checkpoints_;
  std::string directory_;
  // Whose parts Write writes.
  std::string job_ = "job";
};

TEST_F(CheckpointCutTest, ServersNeedNotFollowEachOther) {
  for (uint32_t server : {0u, 2u, 7u}) Write(directory_, server, {0, 2, 7}, 5);
  WriteRecord(directory_, 5, {7, 0, 2});
  EXPECT_EQ(*ServersOfCheckpoint(directory_), (Indices{0, 2, 7}));
  EXPECT_EQ(*ServersOfCheckpoint(directory_, 5), (Indices{0, 2, 7}));
  const auto checkpoint = ReadCheckpoint(directory_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensors[0].values, (std::vector<float>{0, 2, 7}));
}

TEST_F(CheckpointCutTest, OldProgramsCannotMistakeIt) {
  Write(directory_, 0, {0}, 5);
  EXPECT_EQ(ReadCheckpointPart(directory_, v1::TaskId::SERVER, 0)->manifest.format_version(), 2u);
  Write(directory_, 0, {0}, 0);
  EXPECT_EQ(ReadCheckpointPart(directory_, v1::TaskId::SERVER, 0)->manifest.format_version(), 1u);
}

TEST_F(CheckpointCutTest, PartsOfAnotherCutAreRefusedByName) {
  Write(directory_, 0, {0, 1}, 3);
  Write(directory_, 1, {0, 1}, 5);
  WriteRecord(directory_, 5, {0, 1});
  ExpectError(ReadCheckpoint(directory_).status(), absl::StatusCode::kFailedPrecondition,
              "server-0.manifest: is of cut 3 (step150), the checkpoint is of cut 5");
  ExpectError(ServersOfCheckpoint(directory_, 3).status(), absl::StatusCode::kFailedPrecondition,
              "step150/cut: is of cut 5 (step150), cut 3 is wanted");
  ExpectError(ReadCheckpointPart(directory_, v1::TaskId::SERVER, 0, 5).status(), absl::StatusCode::kFailedPrecondition,
              "server-0.manifest: is of cut 3 (step150), cut 5 is wanted");
  EXPECT_TRUE(ReadCheckpointPart(directory_, v1::TaskId::SERVER, 0, 3).ok());
}

TEST_F(CheckpointCutTest, WhatAnEarlierCutLeftThereIsNotLookedAt) {
  for (uint32_t server : {0u, 1u, 2u}) Write(directory_, server, {0, 1, 2}, 3);
  for (uint32_t server : {1u, 2u}) Write(directory_, server, {1, 2}, 5);
  EXPECT_EQ(*ServersOfCheckpoint(directory_, 5), (Indices{1, 2}));
  WriteRecord(directory_, 5, {1, 2});
  EXPECT_EQ(*ServersOfCheckpoint(directory_), (Indices{1, 2}));
  ASSERT_TRUE(WriteFileAtomically(JoinPath(directory_, "server-0.manifest"), "damaged").ok());
  EXPECT_TRUE(ReadCheckpoint(directory_).ok());
}

TEST_F(CheckpointCutTest, WithoutItsRecordACutIsNotComplete) {
  Write(directory_, 0, {0}, 5);
  ExpectError(ReadCheckpoint(directory_).status(), absl::StatusCode::kNotFound,
              "was never completed: there are parts of cut 5 (step150) and no file cut");
  // Unless somebody knows better.
  EXPECT_EQ(*ServersOfCheckpoint(directory_, 5), Indices{0});
  ExpectError(ServersOfCheckpoint(directory_, 6).status(), absl::StatusCode::kFailedPrecondition,
              "is of cut 5 (step150), cut 6 is wanted");
}

TEST_F(CheckpointCutTest, MissingPartsAreAnErrorUnlessTheyAreAskedFor) {
  Write(directory_, 1, {0, 1}, 5);
  WriteRecord(directory_, 5, {0, 1});
  ExpectError(ServersOfCheckpoint(directory_).status(), absl::StatusCode::kNotFound, "server 0 of the checkpoint's 2");
  absl::Status missing;
  EXPECT_EQ(*ServersOfCheckpoint(directory_, 5, &missing), Indices{1});
  ExpectError(missing, absl::StatusCode::kNotFound, "server 0 of the checkpoint's 2");
}

TEST_F(CheckpointCutTest, AManifestThatSpeaksOfVeryManyServersIsAnErrorAtOnce) {
  Write(directory_, 0, {0}, 0);
  const std::string path = JoinPath(directory_, "server-0.manifest");
  v1::CheckpointManifest manifest;
  ASSERT_TRUE(manifest.ParseFromString(*ReadFile(path)));
  manifest.set_servers(0xffffffffu);
  ASSERT_TRUE(WriteFileAtomically(path, manifest.SerializeAsString()).ok());
  ExpectError(ServersOfCheckpoint(directory_).status(), absl::StatusCode::kNotFound,
              "server 1 of the checkpoint's 4294967295");
}

TEST_F(CheckpointCutTest, ListsWhatIsCompleteInOrder) {
  EXPECT_EQ(ListCheckpoints(checkpoints_), std::vector<std::string>());
  for (const char* name : {"step0", "final", "mine"}) Write(JoinPath(checkpoints_, name), 0, {0}, 0);
  uint64_t cut = 0;
  for (const char* name : {"step90", "step150", "step1000", "stopped"}) {
    Write(JoinPath(checkpoints_, name), 0, {0}, ++cut);
    WriteRecord(JoinPath(checkpoints_, name), cut, {0});
  }
  Write(JoinPath(checkpoints_, "step7"), 0, {0}, 5);
  Write(JoinPath(checkpoints_, "step8"), 0, {0}, 0);
  EXPECT_EQ(ListCheckpoints(checkpoints_),
            (std::vector<std::string>{"step0", "step90", "step150", "step1000", "stopped", "final"}));
  // The job went on from there.
  Write(JoinPath(checkpoints_, "step1100"), 0, {0}, 6);
  WriteRecord(JoinPath(checkpoints_, "step1100"), 6, {0});
  EXPECT_EQ(ListCheckpoints(checkpoints_),
            (std::vector<std::string>{"step0", "step90", "step150", "step1000", "stopped", "step1100", "final"}));
  ASSERT_TRUE(RemoveFile(JoinPath(checkpoints_, "step1100/cut")).ok());
  ASSERT_TRUE(RemoveFile(JoinPath(checkpoints_, "step0/server-0.manifest")).ok());
  ASSERT_TRUE(RemoveFile(JoinPath(checkpoints_, "stopped/cut")).ok());
  ASSERT_TRUE(WriteFileAtomically(JoinPath(checkpoints_, "step90/cut"), "damaged").ok());
  EXPECT_EQ(ListCheckpoints(checkpoints_), (std::vector<std::string>{"step150", "step1000", "final"}));
  // As programs before cuts wrote it.
  Write(JoinPath(checkpoints_, "stopped"), 0, {0}, 0);
  EXPECT_EQ(ListCheckpoints(checkpoints_), (std::vector<std::string>{"step150", "step1000", "stopped", "final"}));
}

TEST_F(CheckpointCutTest, ATaskRemovesItsOwnPartsOfOldCutsAlone) {
  v1::TaskId task;
  task.set_role(v1::TaskId::SERVER);
  task.set_index(2);
  EXPECT_TRUE(KeepParts(checkpoints_, task, {}).ok());  // Before the first checkpoint.
  const auto list = [this](const std::string& name) { return *ListDirectory(JoinPath(checkpoints_, name)); };
  using Names = std::vector<std::string>;
  for (const char* name : {"step0", "step5", "step7", "step9", "stopped"}) {
    Write(JoinPath(checkpoints_, name), 2, {0, 2}, 5);
  }
  Write(JoinPath(checkpoints_, "step7"), 0, {0, 2}, 5);
  for (const char* file : {"server-2.data.0123456789abcdef.tmp", "server-2.data.tmp", "server-2.manifest.tmp"}) {
    ASSERT_TRUE(WriteFileAtomically(JoinPath(checkpoints_, absl::StrCat("step5/", file)), "of a crash").ok());
  }
  ASSERT_TRUE(MakeDirectories(JoinPath(checkpoints_, "steps")).ok());
  ASSERT_TRUE(KeepParts(checkpoints_, task, {"step9"}).ok());
  EXPECT_EQ(*ListDirectory(checkpoints_), (Names{"step0", "step7", "step9", "steps", "stopped"}));
  EXPECT_EQ(list("step7"), (Names{"server-0.data", "server-0.manifest"}));
  EXPECT_EQ(list("step9"), (Names{"server-2.data", "server-2.manifest"}));
  EXPECT_TRUE(KeepParts(checkpoints_, task, {"step9"}).ok());
}

TEST_F(CheckpointCutTest, AServerRemovesOldPartsOfOthersToo) {
  v1::TaskId task;
  task.set_role(v1::TaskId::SERVER);
  task.set_index(2);
  const auto list = [this](const std::string& name) { return *ListDirectory(JoinPath(checkpoints_, name)); };
  using Names = std::vector<std::string>;
  for (const uint32_t server : {0u, 2u}) {
    Write(JoinPath(checkpoints_, "step5"), server, {0, 2}, 5);
    Write(JoinPath(checkpoints_, "step7"), server, {0, 2}, 6);
  }
  // Of a server that is gone, without a part of this one beside it; and of another job that was there before.
  Write(JoinPath(checkpoints_, "step3"), 1, {0, 1}, 4);
  job_ = "other";
  Write(JoinPath(checkpoints_, "step4"), 1, {0, 1}, 4);
  job_ = "job";
  // The copy came before this server's own part, and before it was told which to keep.
  Write(JoinPath(checkpoints_, "step9"), 0, {0, 2}, 7);
  ASSERT_TRUE(KeepParts(checkpoints_, task, {"step7"}, /*of_others=*/true).ok());
  EXPECT_EQ(*ListDirectory(checkpoints_), (Names{"step4", "step7", "step9"}));
  EXPECT_EQ(list("step7").size(), 4u);
  EXPECT_EQ(list("step9"), (Names{"server-0.data", "server-0.manifest"}));
}

// What is half written may take up the room that is missing.
TEST_F(CheckpointCutTest, APartThatIsGivenUpLeavesNothing) {
  v1::TaskId task;
  task.set_role(v1::TaskId::SERVER);
  { ASSERT_TRUE(CheckpointWriter::Create(directory_, task).ok()); }
  EXPECT_EQ(*ListDirectory(directory_), std::vector<std::string>());
}

}  // namespace
}  // namespace rubato
