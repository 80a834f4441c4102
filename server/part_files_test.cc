#include "server/part_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"
#include "common/storage/testing/file_size_limit.h"

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
  // Of `rows` rows of 4 float32, whose keys are the even numbers.
  static ChunkSnapshot MakeShard(uint32_t chunk, size_t rows) {
    auto shard = std::make_shared<ShardSnapshot>();
    shard->record.set_chunk(chunk);
    shard->record.set_table("users");
    shard->record.set_shard(chunk % 8);
    shard->record.set_shards(8);
    shard->record.set_algorithm(v1::TableConfig::ADAGRAD);
    shard->record.set_dimension(2);
    shard->record.set_row_floats(4);
    shard->record.set_rows(static_cast<int64_t>(rows));
    std::vector<uint64_t> keys(rows);
    std::vector<float> values(4 * rows);
    for (size_t i = 0; i < rows; ++i) keys[i] = 2 * i;
    for (size_t i = 0; i < 4 * rows; ++i) values[i] = static_cast<float>(i % 1000 + chunk);
    shard->keys = std::make_shared<const std::vector<uint64_t>>(std::move(keys));
    shard->rows = std::make_shared<const std::vector<float>>(std::move(values));
    // Of every other shard.
    if (chunk % 2 == 0) shard->push_counts.assign(20, chunk);
    shard->record.set_push_counts_bytes(sizeof(uint64_t) * shard->push_counts.size());
    ChunkSnapshot snapshot;
    snapshot.shard = std::move(shard);
    return snapshot;
  }
  static void ExpectIsShard(const CheckpointPart& part, const v1::ShardRecord& record, const ShardSnapshot& shard) {
    std::vector<uint64_t> keys(shard.keys->size());
    std::vector<float> rows(shard.rows->size());
    ASSERT_EQ(record.rows(), static_cast<int64_t>(keys.size()));
    part.Copy(record.keys_at(), record.rows(), keys.data());
    part.Copy(record.rows_at(), static_cast<int64_t>(rows.size()), rows.data());
    EXPECT_TRUE(keys == *shard.keys);
    EXPECT_TRUE(rows == *shard.rows);
    std::vector<uint64_t> push_counts(record.push_counts_bytes() / sizeof(uint64_t));
    part.Copy(record.push_counts_at(), static_cast<int64_t>(push_counts.size()), push_counts.data());
    EXPECT_EQ(push_counts, shard.push_counts);
  }
  void Write(const std::string& name, uint32_t index = 2) {
    const absl::Status status = Try(MakePart(name), Files(index)).status();
    EXPECT_TRUE(status.ok()) << status;
  }
  static absl::StatusOr<int64_t> Try(Part part, const PartFiles& files) {
    return files.Write(part, [] { return false; });
  }
  Names List(const std::string& name = "") { return ListDirectory(JoinPath(directory_, name)).value_or(Names()); }

  const std::string directory_;
};

TEST_F(PartFilesTest, WritesAPartThatSaysOfWhichCutAndOfWhichServersItIs) {
  absl::StatusOr<int64_t> bytes = Try(MakePart("step12"), Files());
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
  ASSERT_TRUE(Try(MakePart("final", 0), Files()).ok());
  absl::StatusOr<CheckpointPart> part = ReadCheckpointPart(directory_ + "/final", v1::TaskId::SERVER, 2);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_FALSE(part->manifest.has_cut());
}

TEST_F(PartFilesTest, NamesThatLeaveTheDirectoryAreRefused) {
  for (const char* name : {"", ".", "..", "/", "step", "stepx", "step1/../..", "../step1", "step1 ", "cut", "step-1"}) {
    EXPECT_EQ(Try(MakePart(name), Files()).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(FileExists(directory_));
}

TEST_F(PartFilesTest, SlotsComeFromTheLastTensorToTheFirstBeforeAllWeights) {
  Part part = MakePart("step12");
  const ChunkSnapshot one = part.chunks[0];
  part.chunks.clear();
  const std::vector<std::pair<uint32_t, std::string>> chunks = {{4, "b"}, {1, "a"}, {7, "c"}, {3, "b"}, {0, "a"}};
  for (const auto& [index, tensor] : chunks) {
    part.chunks.push_back(one);
    part.chunks.back().record.set_chunk(index);
    part.chunks.back().record.set_tensor(tensor);
  }
  ASSERT_TRUE(Try(std::move(part), Files()).ok());
  absl::StatusOr<CheckpointPart> read = ReadCheckpointPart(directory_ + "/step12", v1::TaskId::SERVER, 2);
  ASSERT_TRUE(read.ok()) << read.status();
  std::map<uint64_t, uint32_t> slots, weights;  // Chunks by their place in the file.
  for (const v1::ChunkRecord& chunk : read->manifest.chunks()) {
    slots[chunk.slots_at(0)] = weights[chunk.values_at()] = chunk.chunk();
  }
  EXPECT_LT(slots.rbegin()->first, weights.begin()->first);
  for (const auto& places : {slots, weights}) {
    std::vector<uint32_t> order;
    for (const auto& [at, chunk] : places) order.push_back(chunk);
    EXPECT_EQ(order, (std::vector<uint32_t>{7, 3, 4, 0, 1}));
  }
}

TEST_F(PartFilesTest, ShardsComeByChunkAfterAllTensors) {
  Part part = MakePart("step12");
  const std::vector<ChunkSnapshot> shards = {MakeShard(10, 3), MakeShard(11, 0), MakeShard(12, 50)};
  part.chunks.insert(part.chunks.begin(), {shards[2], shards[0]});
  part.chunks.push_back(shards[1]);
  ASSERT_TRUE(Try(std::move(part), Files()).ok());
  absl::StatusOr<CheckpointPart> read = ReadCheckpointPart(directory_ + "/step12", v1::TaskId::SERVER, 2);
  ASSERT_TRUE(read.ok()) << read.status();
  const v1::CheckpointManifest& manifest = read->manifest;
  EXPECT_EQ(manifest.format_version(), kCheckpointFormatVersion);
  ASSERT_EQ(manifest.chunks_size(), 1);
  ASSERT_EQ(manifest.shards_size(), 3);
  uint64_t end = manifest.chunks(0).values_at() + 4 * sizeof(float);
  for (int i = 0; i < 3; ++i) {
    const v1::ShardRecord& record = manifest.shards(i);
    EXPECT_EQ(record.chunk(), 10u + static_cast<uint32_t>(i));
    EXPECT_GE(record.keys_at(), end);
    EXPECT_GE(record.rows_at(), record.keys_at());
    end = record.rows_at() + 4 * sizeof(float) * static_cast<uint64_t>(record.rows());
    ExpectIsShard(*read, record, *shards[i].shard);
  }
  EXPECT_EQ(end, manifest.data_bytes());
}

TEST_F(PartFilesTest, ALargeShardIsCancelledInTheMiddle) {
  Part part = MakePart("step12");
  part.chunks = {MakeShard(0, 1 << 20)};
  int asked = 0;
  const absl::Status status = Files().Write(part, [&] { return ++asked == 5; }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  part = {};
  EXPECT_EQ(List("step12"), Names());
}

TEST_F(PartFilesTest, OneThatIsCancelledLeavesNothingBehind) {
  {
    Part part = MakePart("step12");
    EXPECT_EQ(Files().Write(part, [] { return true; }).status().code(), absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(List("step12"), Names());
}

// Three chunks of 3 MiB, with a slot each, in `directory`, whose disk has no room for the last one until then.
class LargePartTest : public PartFilesTest, public testing::WithParamInterface<std::string> {
 protected:
  static constexpr int64_t kLength = 3 << 18;

  static Part MakeLargePart() {
    Part part = MakePart("step12");
    part.chunks.clear();
    for (uint32_t index : {7u, 5u, 6u}) {
      ChunkSnapshot& chunk = part.chunks.emplace_back();
      chunk.record.set_chunk(index);
      chunk.record.set_tensor("a");
      chunk.record.add_shape(3 * kLength);
      chunk.record.set_offset((index - 5) * kLength);
      chunk.record.set_length(kLength);
      chunk.weights = FloatBuffer::Allocate(kLength);
      chunk.slots.push_back(FloatBuffer::Allocate(kLength));
      std::fill_n(chunk.weights->data(), kLength, static_cast<float>(index));
      std::fill_n(chunk.slots[0]->data(), kLength, 10.0f + static_cast<float>(index));
    }
    return part;
  }
  PartFiles LargeFiles() const {
    PartFiles::Options options;
    options.directory = large_directory_;
    options.task.set_role(v1::TaskId::SERVER);
    options.job_name = "job";
    options.servers = {0};
    return PartFiles(options);
  }
  absl::StatusOr<int64_t> TryOnFullDisk(Part& part) {
    const FileSizeLimit limit(14 << 20);
    return LargeFiles().Write(part, [] { return false; });
  }
  void ExpectWhole() {
    absl::StatusOr<CheckpointPart> read = ReadCheckpointPart(large_directory_ + "/step12", v1::TaskId::SERVER, 0);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->manifest.chunks_size(), 3);
    std::vector<float> values(kLength);
    for (const v1::ChunkRecord& chunk : read->manifest.chunks()) {
      const auto index = static_cast<float>(chunk.chunk());
      read->Copy(chunk.values_at(), kLength, values.data());
      EXPECT_EQ(values, std::vector<float>(kLength, index));
      read->Copy(chunk.slots_at(0), kLength, values.data());
      EXPECT_EQ(values, std::vector<float>(kLength, 10 + index));
    }
    EXPECT_EQ(*ListDirectory(large_directory_ + "/step12"), (Names{"server-0.data", "server-0.manifest"}));
  }

  ~LargePartTest() override { std::filesystem::remove_all(large_directory_); }

  const std::string large_directory_ = JoinPath(GetParam(), "large_part_test");
};

TEST_P(LargePartTest, ItsArraysAreNeededNoMoreOnceItIsWritten) {
  Part part = MakeLargePart();
  const std::weak_ptr<FloatBuffer> array = part.chunks[0].slots[0];
  const auto bytes = LargeFiles().Write(part, [] { return false; });
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(array.expired());
  ExpectWhole();
}

TEST_P(LargePartTest, AnAttemptGoesOnWhereTheOneBeforeFailed) {
  Part part = MakeLargePart();
  const absl::Status full = TryOnFullDisk(part).status();
  EXPECT_NE(full.message().find("File too large"), absl::string_view::npos) << full;
  // Past the page cache what was written is let go of, and stays; otherwise nothing is.
  const bool let_go = part.chunks[0].slots[0] == nullptr;
  EXPECT_EQ(part.chunks[2].slots[0] == nullptr, let_go);
  EXPECT_EQ(part.chunks[0].weights == nullptr, let_go);
  EXPECT_NE(part.chunks[2].weights, nullptr);
  EXPECT_EQ(ListDirectory(large_directory_ + "/step12")->size(), let_go ? 1u : 0u);
  const auto bytes = LargeFiles().Write(part, [] { return false; });
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  ExpectWhole();
}

TEST_P(LargePartTest, WhatTheDiskHasNotKeptIsLost) {
  Part part = MakeLargePart();
  ASSERT_FALSE(TryOnFullDisk(part).ok());
  const bool let_go = part.chunks[0].slots[0] == nullptr;
  const std::string directory = JoinPath(large_directory_, "step12");
  const Names files = ListDirectory(directory).value_or(Names());
  for (const std::string& file : files) ASSERT_TRUE(RemoveFile(JoinPath(directory, file)).ok());
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::Status status = LargeFiles().Write(part, [] { return false; }).status();
    EXPECT_EQ(status.code(), let_go ? absl::StatusCode::kDataLoss : absl::StatusCode::kOk) << status;
    if (!let_go) return ExpectWhole();
  }
}

// Of a shard of 14 MiB what there is room for is written once.
TEST_P(LargePartTest, AnAttemptGoesOnInTheMiddleOfAShard) {
  Part part = MakeLargePart();
  part.chunks.resize(1);
  const ChunkSnapshot kept = MakeShard(9, 600'000);
  const ChunkSnapshot last = MakeShard(10, 10);
  part.chunks.insert(part.chunks.begin(), {last, kept});
  for (int attempt = 0; attempt < 3; ++attempt) {
    const absl::Status full = TryOnFullDisk(part).status();
    EXPECT_NE(full.message().find("File too large"), absl::string_view::npos) << full;
    ASSERT_EQ(part.chunks.size(), 3u);
    EXPECT_EQ(part.chunks[1].shard, kept.shard);
  }
  const auto bytes = LargeFiles().Write(part, [] { return false; });
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<CheckpointPart> read = ReadCheckpointPart(large_directory_ + "/step12", v1::TaskId::SERVER, 0);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->manifest.shards_size(), 2);
  ExpectIsShard(*read, read->manifest.shards(0), *kept.shard);
  ExpectIsShard(*read, read->manifest.shards(1), *last.shard);
  // Nothing but padding is between the arrays.
  const auto array_bytes = static_cast<int64_t>(2 * sizeof(float) * kLength + 600'010 * (8 + 4 * sizeof(float)));
  EXPECT_LT(*bytes, array_bytes + 5 * 4096);
  EXPECT_EQ(kept.shard.use_count(), 1);
}

// The second has no disk under it.
INSTANTIATE_TEST_SUITE_P(Folders, LargePartTest, testing::Values(testing::TempDir(), "/dev/shm"));

TEST_F(PartFilesTest, AnErrorNamesThePath) {
  ASSERT_TRUE(WriteFileAtomically(directory_, "a file in the place of the directory").ok());
  const absl::Status status = Try(MakePart("step12"), Files()).status();
  EXPECT_NE(status.message().find("cannot create directory"), absl::string_view::npos) << status;
  ASSERT_TRUE(RemoveFile(directory_).ok());
}

}  // namespace
}  // namespace rubato::server
