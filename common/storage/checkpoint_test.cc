#include "common/storage/checkpoint.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/storage/file.h"

namespace rubato {
namespace {

std::vector<float> Values(int64_t n, float first) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(first + static_cast<float>(i));
  return values;
}

uint32_t Crc32(const std::vector<float>& values) {
  const size_t bytes = values.size() * sizeof(float);
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(values.data()), static_cast<uInt>(bytes)));
}

v1::TaskId Server(uint32_t index) {
  v1::TaskId task;
  task.set_role(v1::TaskId::SERVER);
  task.set_index(index);
  return task;
}

class CheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = JoinPath(testing::TempDir(), std::string("checkpoint_test_") +
                                                  testing::UnitTest::GetInstance()->current_test_info()->name() +
                                                  "/checkpoints/final");
    ASSERT_TRUE(MakeDirectories(directory_).ok());
    const std::vector<std::string> names = *ListDirectory(directory_);
    for (const std::string& name : names) ASSERT_TRUE(RemoveFile(JoinPath(directory_, name)).ok());
  }

  struct Piece {
    uint32_t chunk;
    std::string tensor;
    std::vector<int64_t> shape;
    int64_t offset;
    std::vector<float> weights;
    int slots = 1;
  };

  absl::Status WritePart(uint32_t server, uint32_t servers, const std::vector<Piece>& pieces,
                         const std::string& job = "job") {
    auto writer = CheckpointWriter::Create(directory_, Server(server));
    if (!writer.ok()) return writer.status();
    for (const Piece& piece : pieces) {
      CheckpointChunk chunk;
      chunk.record.set_chunk(piece.chunk);
      chunk.record.set_tensor(piece.tensor);
      for (int64_t dimension : piece.shape) chunk.record.add_shape(dimension);
      chunk.record.set_offset(piece.offset);
      chunk.record.set_length(static_cast<int64_t>(piece.weights.size()));
      chunk.record.set_version(100 + piece.chunk);
      const std::vector<float> slot = Values(static_cast<int64_t>(piece.weights.size()), -50);
      chunk.values = piece.weights.data();
      chunk.slots.assign(piece.slots, slot.data());
      if (absl::Status status = (*writer)->Add(chunk); !status.ok()) return status;
    }
    v1::CheckpointManifest manifest;
    manifest.set_job_name(job);
    manifest.set_servers(servers);
    manifest.mutable_plan()->set_generation(3);
    return (*writer)->Finish(manifest);
  }

  // a.weight [2, 5] split at 4 over two servers, a.bias [3].
  void WriteGood() {
    ASSERT_TRUE(WritePart(0, 2, {{2, "a.bias", {3}, 0, Values(3, 20)}, {0, "a.weight", {2, 5}, 0, Values(4, 0)}}).ok());
    ASSERT_TRUE(WritePart(1, 2, {{1, "a.weight", {2, 5}, 4, Values(6, 4)}}).ok());
  }

  // Copies server 0's part into `to`.
  absl::Status CopyPart(const std::string& to, const std::function<void(v1::CheckpointManifest&)>& change) {
    absl::StatusOr<v1::CheckpointManifest> manifest = ReadCheckpointManifest(directory_, v1::TaskId::SERVER, 0);
    if (!manifest.ok()) return manifest.status();
    auto writer = CheckpointWriter::Create(to, Server(0));
    if (!writer.ok()) return writer.status();
    for (uint64_t offset = 0; offset < manifest->data_bytes(); offset += 10) {
      absl::StatusOr<std::string> piece = ReadCheckpointData(directory_, v1::TaskId::SERVER, 0, offset, 10);
      if (!piece.ok()) return piece.status();
      EXPECT_EQ(piece->size(), std::min<uint64_t>(10, manifest->data_bytes() - offset));
      if (absl::Status status = (*writer)->Copy(*piece); !status.ok()) return status;
    }
    change(*manifest);
    return (*writer)->FinishCopy(*manifest);
  }

  // Rewrites server 0's manifest.
  void Change(const std::function<void(v1::CheckpointManifest&)>& change) {
    const std::string path = JoinPath(directory_, "server-0.manifest");
    v1::CheckpointManifest manifest;
    ASSERT_TRUE(manifest.ParseFromString(*ReadFile(path)));
    change(manifest);
    ASSERT_TRUE(WriteFileAtomically(path, manifest.SerializeAsString()).ok());
  }

  void ExpectError(absl::StatusCode code, const std::string& text) {
    const absl::Status status = ReadCheckpoint(directory_).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(text), absl::string_view::npos) << status;
  }

  std::string directory_;
};

TEST_F(CheckpointTest, AssemblesTensorsOverServersInModelOrder) {
  WriteGood();
  const absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(directory_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->job_name, "job");
  EXPECT_EQ(checkpoint->plan.generation(), 3u);
  EXPECT_EQ(checkpoint->version_min, 100);
  EXPECT_EQ(checkpoint->version_max, 102);
  ASSERT_EQ(checkpoint->tensors.size(), 2u);
  EXPECT_EQ(checkpoint->tensors[0].name, "a.weight");
  EXPECT_EQ(checkpoint->tensors[0].shape, (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(checkpoint->tensors[0].values, Values(10, 0));
  EXPECT_EQ(checkpoint->tensors[1].values, Values(3, 20));
  EXPECT_EQ(ReadCheckpointTensors(directory_)->size(), 2u);
}

TEST_F(CheckpointTest, PartHoldsWeightsAndSlotsAtAlignedOffsets) {
  WriteGood();
  const absl::StatusOr<CheckpointPart> part = ReadCheckpointPart(directory_, v1::TaskId::SERVER, 0);
  ASSERT_TRUE(part.ok()) << part.status();
  ASSERT_EQ(part->manifest.chunks_size(), 2);
  const v1::ChunkRecord& chunk = part->manifest.chunks(0);
  EXPECT_EQ(chunk.chunk(), 0u);
  EXPECT_EQ(chunk.values_at() % 64, 0u);
  ASSERT_EQ(chunk.slots_at_size(), 1);
  EXPECT_EQ(chunk.slots_at(0) % 64, 0u);
  std::vector<float> values(4);
  part->Copy(chunk.slots_at(0), 4, values.data());
  EXPECT_EQ(values, Values(4, -50));
}

TEST_F(CheckpointTest, ChecksumsThatAreKnownAreNotMadeAgain) {
  const std::vector<float> values = Values(1000, 0), slot = Values(7, -50);
  const uint32_t right = Crc32(values);
  for (const uint32_t known : {right, right + 1}) {
    auto writer = CheckpointWriter::Create(directory_, Server(0));
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->AddArrays({{slot, std::nullopt}, {values, known}, {slot, Crc32(slot)}}).ok());
    v1::CheckpointManifest manifest;
    manifest.set_servers(1);
    ASSERT_TRUE((*writer)->Finish(manifest).ok());
    const absl::Status read = ReadCheckpointPart(directory_, v1::TaskId::SERVER, 0).status();
    EXPECT_EQ(read.code(), known == right ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss) << read;
  }
}

TEST_F(CheckpointTest, LeavesNoTemporaryFiles) {
  WriteGood();
  EXPECT_EQ(*ListDirectory(directory_),
            (std::vector<std::string>{"server-0.data", "server-0.manifest", "server-1.data", "server-1.manifest"}));
}

TEST_F(CheckpointTest, UnfinishedCheckpointIsNotFound) {
  auto writer = CheckpointWriter::Create(directory_, Server(0));
  ASSERT_TRUE(writer.ok());
  writer->reset();
  ExpectError(absl::StatusCode::kNotFound, "holds no server-<i>.manifest");
}

TEST_F(CheckpointTest, MayBeWrittenAgain) {
  WriteGood();
  WriteGood();
  EXPECT_TRUE(ReadCheckpoint(directory_).ok());
}

// A server that stood still while it wrote, and in whose place there is another one.
TEST_F(CheckpointTest, AWriterWhosePlaceWasTakenLeavesThePartAlone) {
  auto frozen = CheckpointWriter::Create(directory_, Server(1));
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  const std::vector<float> old_values = Values(6, -1000);
  CheckpointChunk chunk;
  chunk.record.set_chunk(1);
  chunk.record.set_tensor("a.weight");
  chunk.record.set_length(6);
  chunk.values = old_values.data();
  WriteGood();
  ASSERT_TRUE((*frozen)->Add(chunk).ok());
  v1::CheckpointManifest manifest;
  manifest.set_servers(2);
  EXPECT_TRUE(absl::IsNotFound((*frozen)->Finish(manifest)));
  frozen->reset();
  auto checkpoint = ReadCheckpoint(directory_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensors[0].values, Values(10, 0));
  EXPECT_EQ(ListDirectory(directory_)->size(), 4u);
}

TEST_F(CheckpointTest, NamesTheServerWhosePartIsMissing) {
  WriteGood();
  ASSERT_TRUE(RemoveFile(JoinPath(directory_, "server-1.manifest")).ok());
  ExpectError(absl::StatusCode::kNotFound, "server 1 of the checkpoint's 2");
}

TEST_F(CheckpointTest, NewerFormatIsRefusedWithBothVersions) {
  WriteGood();
  Change([](v1::CheckpointManifest& manifest) { manifest.set_format_version(7); });
  ExpectError(absl::StatusCode::kUnimplemented, "format_version 7; this program reads up to 3");
}

TEST_F(CheckpointTest, TruncatedDataIsDataLossWithBothSizes) {
  WriteGood();
  const std::string path = JoinPath(directory_, "server-0.data");
  const std::string data = *ReadFile(path);
  ASSERT_TRUE(WriteFileAtomically(path, data.substr(0, data.size() - 1)).ok());
  ExpectError(absl::StatusCode::kDataLoss, "server-0.data: has " + std::to_string(data.size() - 1) + " bytes");
}

TEST_F(CheckpointTest, ChangedDataIsDataLoss) {
  WriteGood();
  const std::string path = JoinPath(directory_, "server-1.data");
  std::string data = *ReadFile(path);
  data[3] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, data).ok());
  ExpectError(absl::StatusCode::kDataLoss, "server-1.data: its CRC is");
}

TEST_F(CheckpointTest, GarbledManifestIsDataLoss) {
  WriteGood();
  ASSERT_TRUE(WriteFileAtomically(JoinPath(directory_, "server-0.manifest"), "\xff\xff\xff").ok());
  ExpectError(absl::StatusCode::kDataLoss, "not a valid CheckpointManifest");
}

TEST_F(CheckpointTest, MissingChunkIsNamedByItsElements) {
  ASSERT_TRUE(WritePart(0, 1, {{0, "a", {10}, 0, Values(4, 0)}, {2, "a", {10}, 7, Values(3, 0)}}).ok());
  ExpectError(absl::StatusCode::kDataLoss, "a: elements 4 to 6 are missing");
  ASSERT_TRUE(WritePart(0, 1, {{0, "a", {10}, 0, Values(4, 0)}}).ok());
  ExpectError(absl::StatusCode::kDataLoss, "a: elements 4 to 9 are missing");
}

TEST_F(CheckpointTest, OverlappingChunksAreDataLoss) {
  ASSERT_TRUE(WritePart(0, 1, {{0, "a", {10}, 0, Values(6, 0)}, {1, "a", {10}, 4, Values(6, 0)}}).ok());
  ExpectError(absl::StatusCode::kDataLoss, "a: elements 4 to 5 are there twice");
}

TEST_F(CheckpointTest, DisagreeingShapesAreDataLoss) {
  ASSERT_TRUE(WritePart(0, 1, {{0, "a", {10}, 0, Values(5, 0)}, {1, "a", {2, 5}, 5, Values(5, 0)}}).ok());
  ExpectError(absl::StatusCode::kDataLoss, "shape [2, 5], another chunk says [10]");
}

TEST_F(CheckpointTest, PartsOfDifferentJobsAreDataLoss) {
  WriteGood();
  ASSERT_TRUE(WritePart(1, 2, {{1, "a.weight", {2, 5}, 4, Values(6, 4)}}, "other").ok());
  ExpectError(absl::StatusCode::kDataLoss, "for job 'other'");
}

TEST_F(CheckpointTest, ImpossibleNumbersInAManifestAreDataLoss) {
  const std::vector<std::pair<std::string, std::function<void(v1::ChunkRecord&)>>> changes = {
      {"values_at 1000000", [](v1::ChunkRecord& c) { c.set_values_at(1000000); }},
      {"values_at", [](v1::ChunkRecord& c) { c.set_values_at(~uint64_t{0} - 3); }},
      {"slots_at", [](v1::ChunkRecord& c) { c.set_slots_at(0, 100000); }},
      {"length -1", [](v1::ChunkRecord& c) { c.set_length(-1); }},
      {"offset -4", [](v1::ChunkRecord& c) { c.set_offset(-4); }},
      {"offset 9223372036854775807", [](v1::ChunkRecord& c) { c.set_offset(INT64_MAX); }},
      {"is impossible", [](v1::ChunkRecord& c) { c.set_shape(0, 0); }},
      {"is impossible", [](v1::ChunkRecord& c) { c.set_shape(0, INT64_MAX); }},
      {"the tensor has 5000000000000 elements", [](v1::ChunkRecord& c) { c.set_shape(0, 1000000000000); }},
  };
  for (const auto& change : changes) {
    WriteGood();
    Change([&](v1::CheckpointManifest& manifest) { change.second(*manifest.mutable_chunks(0)); });
    ExpectError(absl::StatusCode::kDataLoss, change.first);
  }
}

TEST_F(CheckpointTest, WriterRefusesWhatCannotBeRead) {
  EXPECT_EQ(WritePart(0, 1, {{0, "a", {1}, 0, {}}}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(WritePart(2, 2, {}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CheckpointTest, ACopyIsTheSamePart) {
  WriteGood();
  const std::string to = JoinPath(DirectoryOf(directory_), "step5");
  ASSERT_TRUE(CopyPart(to, [](v1::CheckpointManifest&) {}).ok());
  for (const char* file : {"server-0.data", "server-0.manifest"}) {
    EXPECT_EQ(*ReadFile(JoinPath(to, file)), *ReadFile(JoinPath(directory_, file))) << file;
  }
  EXPECT_TRUE(ReadCheckpointPart(to, v1::TaskId::SERVER, 0).ok());
}

TEST_F(CheckpointTest, ACopyThatIsDamagedLeavesNothing) {
  WriteGood();
  const std::string to = JoinPath(DirectoryOf(directory_), "step6");
  EXPECT_EQ(
      CopyPart(to, [](v1::CheckpointManifest& manifest) { manifest.set_data_crc32(manifest.data_crc32() + 1); }).code(),
      absl::StatusCode::kDataLoss);
  EXPECT_EQ(
      CopyPart(to, [](v1::CheckpointManifest& manifest) { manifest.set_data_bytes(manifest.data_bytes() + 1); }).code(),
      absl::StatusCode::kDataLoss);
  EXPECT_EQ(*ListDirectory(to), std::vector<std::string>());
}

}  // namespace
}  // namespace rubato
