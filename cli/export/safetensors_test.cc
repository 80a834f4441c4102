#include "cli/export/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/storage/checkpoint.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// A chunk of a model with "a.weight" [2, 3] = 1..6 and "a.bias" [3] = 7..9.
struct Piece {
  uint32_t chunk;
  int64_t offset;
  std::vector<float> values;
};

void WritePart(const std::string& run, uint32_t server, uint32_t servers, uint64_t incarnation,
               const std::vector<Piece>& pieces, const std::string& name = "final") {
  v1::TaskId task;
  task.set_role(v1::TaskId::SERVER);
  task.set_index(server);
  task.set_incarnation(incarnation);
  auto writer = CheckpointWriter::Create(JoinPath(run, "checkpoints/" + name), task);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (const Piece& piece : pieces) {
    const bool bias = piece.chunk == 2;
    CheckpointChunk chunk;
    chunk.record.set_chunk(piece.chunk);
    chunk.record.set_tensor(bias ? "a.bias" : "a.weight");
    if (!bias) chunk.record.add_shape(2);
    chunk.record.add_shape(3);
    chunk.record.set_offset(piece.offset);
    chunk.record.set_length(static_cast<int64_t>(piece.values.size()));
    chunk.record.set_version(400);
    chunk.values = piece.values.data();
    ASSERT_TRUE((*writer)->Add(chunk).ok());
  }
  v1::CheckpointManifest manifest;
  manifest.set_job_name("mnist");
  manifest.set_servers(servers);
  manifest.mutable_plan()->set_generation(2);
  manifest.mutable_plan()->add_members()->set_incarnation(incarnation + 1);
  ASSERT_TRUE((*writer)->Finish(manifest).ok());
}

std::string Fresh(const std::string& name) {
  const std::string run = JoinPath(testing::TempDir(), "safetensors_test_" + name);
  EXPECT_TRUE(MakeDirectories(run).ok());
  return run;
}

std::string OneServer(const std::string& name) {
  const std::string run = Fresh(name);
  WritePart(run, 0, 1, 77, {{0, 0, {1, 2, 3, 4}}, {1, 4, {5, 6}}, {2, 0, {7, 8, 9}}});
  return run;
}

TEST(SafetensorsTest, AnIndependentReaderFindsEveryTensor) {
  const std::string run = OneServer("read"), output = JoinPath(run, "model.safetensors");
  ASSERT_TRUE(ExportSafetensors(run, "final", output).ok());
  const std::string bytes = *ReadFile(output);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  const std::string data = bytes.substr(8 + length);
  EXPECT_EQ(data.size(), 9 * sizeof(float));

  EXPECT_EQ(header.size(), 3u);
  EXPECT_EQ(header["a.weight"]["dtype"], "F32");
  EXPECT_EQ(header["a.weight"]["shape"], (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header["a.weight"]["data_offsets"], (std::vector<uint64_t>{0, 24}));
  EXPECT_EQ(header["a.bias"]["shape"], (std::vector<int64_t>{3}));
  EXPECT_EQ(header["a.bias"]["data_offsets"], (std::vector<uint64_t>{24, 36}));
  for (int i = 0; i < 9; ++i) {
    float value = 0;
    std::memcpy(&value, data.data() + 4 * i, 4);
    EXPECT_EQ(value, static_cast<float>(i + 1));
  }
}

TEST(SafetensorsTest, MetadataIsStringsAndTensorsAreInModelOrder) {
  Checkpoint checkpoint;
  checkpoint.job_name = "mnist";
  checkpoint.plan.set_generation(2);
  checkpoint.version_min = checkpoint.version_max = 400;
  checkpoint.tensors = {{"z", {1}, {0.0f}}, {"a", {1}, {0.0f}}};
  const auto header = nlohmann::ordered_json::parse(SafetensorsHeader(checkpoint).substr(8));
  std::vector<std::string> keys;
  for (const auto& [key, value] : header.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"__metadata__", "z", "a"}));
  EXPECT_EQ(header["__metadata__"].dump(), R"({"job":"mnist","version_min":"400","version_max":"400"})");
}

TEST(SafetensorsTest, TablesHaveTheirKeysFirstAndTheirRowsLast) {
  Checkpoint checkpoint;
  checkpoint.tensors = {{"a", {3}, {1, 2, 3}}};
  NamedTable users;
  users.name = "users";
  users.dimension = 2;
  users.keys = {5, 9};
  users.rows = {1, 2, 3, 4};
  const std::string bytes = SafetensorsHeader(checkpoint, {users});
  EXPECT_EQ(bytes.size() % 8, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8));
  EXPECT_EQ(header["users.keys"].dump(), R"({"data_offsets":[0,16],"dtype":"U64","shape":[2]})");
  EXPECT_EQ(header["a"].dump(), R"({"data_offsets":[16,28],"dtype":"F32","shape":[3]})");
  EXPECT_EQ(header["users.rows"].dump(), R"({"data_offsets":[28,44],"dtype":"F32","shape":[2,2]})");
}

TEST(SafetensorsTest, BytesDoNotDependOnServersOrIncarnations) {
  const std::string one = OneServer("one"), two = Fresh("two");
  WritePart(two, 0, 2, 123, {{1, 4, {5, 6}}});
  WritePart(two, 1, 2, 456, {{2, 0, {7, 8, 9}}, {0, 0, {1, 2, 3, 4}}});
  ASSERT_TRUE(ExportSafetensors(one, "final", JoinPath(one, "m")).ok());
  ASSERT_TRUE(ExportSafetensors(two, "final", JoinPath(two, "m")).ok());
  EXPECT_EQ(*ReadFile(JoinPath(one, "m")), *ReadFile(JoinPath(two, "m")));
}

TEST(SafetensorsTest, UnknownCheckpointNamesThoseThatAreThere) {
  const std::string run = OneServer("unknown");
  const absl::Status status = ExportSafetensors(run, "step0", JoinPath(run, "m")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("there are: final"), absl::string_view::npos) << status;
  EXPECT_EQ(ExportSafetensors("/no/such/run", "final", "/tmp/m").status().code(), absl::StatusCode::kNotFound);
}

TEST(SafetensorsTest, ExportReadsTheCheckpointOfAStoppedJob) {
  const std::string run = Fresh("stopped"), output = JoinPath(run, "m");
  WritePart(run, 0, 1, 77, {{0, 0, {0, 0, 0, 0}}, {1, 4, {0, 0}}, {2, 0, {0, 0, 0}}}, "step0");
  WritePart(run, 0, 1, 77, {{0, 0, {1, 2, 3, 4}}, {1, 4, {5, 6}}, {2, 0, {7, 8, 9}}}, "stopped");
  absl::StatusOr<std::string> exported = ExportSafetensors(run, "", output);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(*exported, "stopped");
  const std::string stopped = *ReadFile(output);
  ASSERT_TRUE(ExportSafetensors(run, "step0", output).ok());
  EXPECT_NE(*ReadFile(output), stopped);
  ASSERT_TRUE(ExportSafetensors(run, "stopped", output).ok());
  EXPECT_EQ(*ReadFile(output), stopped);
}

TEST(SafetensorsTest, WithoutANameTheFinalCheckpointIsExported) {
  const std::string run = OneServer("unnamed");
  WritePart(run, 0, 1, 77, {{0, 0, {0, 0, 0, 0}}, {1, 4, {0, 0}}, {2, 0, {0, 0, 0}}}, "stopped");
  EXPECT_EQ(*ExportSafetensors(run, "", JoinPath(run, "m")), "final");
  const absl::Status status = ExportSafetensors(Fresh("nothing"), "", "/tmp/m").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("there is no checkpoint final or stopped, and no complete one of a step; there is "
                                  "none"),
            absl::string_view::npos)
      << status;
}

TEST(SafetensorsTest, TheNewestCompleteStepIsExportedWhereTheJobHasNotEnded) {
  const std::string run = Fresh("steps"), output = JoinPath(run, "m");
  for (const char* name : {"step0", "step90", "step150", "step200"}) {
    const float step = name[4] == '2' ? 2 : 1;
    WritePart(run, 0, 1, 77, {{0, 0, {step, 2, 3, 4}}, {1, 4, {5, 6}}, {2, 0, {7, 8, 9}}}, name);
  }
  EXPECT_EQ(ExportSafetensors(run, "", output).status().code(), absl::StatusCode::kNotFound);
  for (const auto& [name, cut] : {std::pair("step90", 4), std::pair("step150", 5)}) {
    const std::string directory = JoinPath(run, std::string("checkpoints/") + name);
    v1::CheckpointManifest manifest;
    ASSERT_TRUE(manifest.ParseFromString(*ReadFile(JoinPath(directory, "server-0.manifest"))));
    manifest.mutable_cut()->set_id(cut);
    ASSERT_TRUE(WriteFileAtomically(JoinPath(directory, "server-0.manifest"), manifest.SerializeAsString()).ok());
    v1::CutRecord record;
    record.mutable_cut()->set_id(cut);
    record.add_servers(0);
    ASSERT_TRUE(WriteFileAtomically(JoinPath(directory, "cut"), record.SerializeAsString()).ok());
  }
  absl::StatusOr<std::string> exported = ExportSafetensors(run, "", output);
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(*exported, "step150");
  EXPECT_TRUE(ExportSafetensors(run, "step90", output).ok());
}

TEST(SafetensorsTest, FailedExportLeavesTheOldFile) {
  const std::string run = OneServer("failed"), output = JoinPath(run, "m");
  ASSERT_TRUE(WriteFileAtomically(output, "old").ok());
  ASSERT_TRUE(WriteFileAtomically(JoinPath(run, "checkpoints/final/server-0.data"), "short").ok());
  EXPECT_EQ(ExportSafetensors(run, "final", output).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*ReadFile(output), "old");
  EXPECT_EQ(ExportSafetensors(OneServer("failed"), "final", "/no/such/directory/m").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace rubato
