#include "server/part_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"

namespace rubato::server {
namespace {

using Names = std::vector<std::string>;

class PartFilesTest : public testing::Test {
 protected:
  PartFilesTest()
      : directory_(JoinPath(
            testing::TempDir(),
            absl::StrCat("part_files_test_", testing::UnitTest::GetInstance()->current_test_info()->name()))) {}

  PartFiles Files(uint32_t index = 2, std::vector<uint32_t> servers = {0, 2}) {
    PartFiles::Options options;
    options.directory = directory_;
    options.task.set_role(v1::TaskId::SERVER);
    options.task.set_index(index);
    options.job_name = "job";
    options.servers = std::move(servers);
    return PartFiles(options);
  }
  static Part MakePart(const std::string& name, uint64_t cut = 5) {
    Part part;
    part.name = name;
    part.cut.set_id(cut);
    part.cut.set_name(name);
    part.plan.set_generation(9);
    ChunkSnapshot& chunk = part.chunks.emplace_back();
    chunk.record.set_chunk(3);
    chunk.record.set_tensor("a");
    chunk.record.add_shape(4);
    chunk.record.set_length(4);
    chunk.record.set_version(17);
    chunk.weights = FloatBuffer::Allocate(4);
    std::fill_n(chunk.weights->data(), 4, 1.5f);
    chunk.slots.push_back(FloatBuffer::Allocate(4));
    std::fill_n(chunk.slots.back()->data(), 4, 2.5f);
    return part;
  }
  void Write(const std::string& name, uint32_t index = 2) {
    absl::StatusOr<int64_t> bytes = Files(index).Write(MakePart(name), [] { return false; });
    EXPECT_TRUE(bytes.ok()) << bytes.status();
  }
  Names List(const std::string& name = "") { return ListDirectory(JoinPath(directory_, name)).value_or(Names()); }

  const std::string directory_;
};

TEST_F(PartFilesTest, WritesAPartThatSaysOfWhichCutAndOfWhichServersItIs) {
  absl::StatusOr<int64_t> bytes = Files().Write(MakePart("step12"), [] { return false; });
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(List("step12"), (Names{"server-2.data", "server-2.manifest"}));
  absl::StatusOr<CheckpointPart> part = ReadCheckpointPart(directory_ + "/step12", v1::TaskId::SERVER, 2);
  ASSERT_TRUE(part.ok()) << part.status();
  const v1::CheckpointManifest& manifest = part->manifest;
  EXPECT_EQ(*bytes, static_cast<int64_t>(manifest.data_bytes()));
  EXPECT_EQ(manifest.job_name(), "job");
  EXPECT_EQ(manifest.cut().id(), 5u);
  EXPECT_EQ(manifest.plan().generation(), 9u);
  EXPECT_EQ(std::vector<uint32_t>(manifest.server_indices().begin(), manifest.server_indices().end()),
            (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(manifest.servers(), 3u);
  ASSERT_EQ(manifest.chunks_size(), 1);
  EXPECT_EQ(manifest.chunks(0).version(), 17);
  std::vector<float> read(4);
  part->Copy(manifest.chunks(0).values_at(), 4, read.data());
  EXPECT_EQ(read, std::vector<float>(4, 1.5f));
  part->Copy(manifest.chunks(0).slots_at(0), 4, read.data());
  EXPECT_EQ(read, std::vector<float>(4, 2.5f));
}

TEST_F(PartFilesTest, APartOfNoCutHasNone) {
  ASSERT_TRUE(Files().Write(MakePart("final", 0), [] { return false; }).ok());
  absl::StatusOr<CheckpointPart> part = ReadCheckpointPart(directory_ + "/final", v1::TaskId::SERVER, 2);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_FALSE(part->manifest.has_cut());
}

TEST_F(PartFilesTest, NamesThatLeaveTheDirectoryAreRefused) {
  for (const char* name : {"", ".", "..", "/", "step", "stepx", "step1/../..", "../step1", "step1 ", "cut", "step-1"}) {
    EXPECT_EQ(Files().Write(MakePart(name), [] { return false; }).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(FileExists(directory_));
}

TEST_F(PartFilesTest, OneThatIsCancelledLeavesNothingBehind) {
  EXPECT_EQ(Files().Write(MakePart("step12"), [] { return true; }).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(List("step12"), Names());
}

TEST_F(PartFilesTest, AnErrorNamesThePath) {
  ASSERT_TRUE(WriteFileAtomically(directory_, "a file in the place of the directory").ok());
  const absl::Status status = Files().Write(MakePart("step12"), [] { return false; }).status();
  EXPECT_NE(status.message().find("cannot create directory"), absl::string_view::npos) << status;
  ASSERT_TRUE(RemoveFile(directory_).ok());
}

}  // namespace
}  // namespace rubato::server
