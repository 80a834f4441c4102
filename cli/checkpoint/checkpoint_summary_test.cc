#include "cli/checkpoint/checkpoint_summary.h"

#include <cmath>
#include <limits>
#include <vector>

#include "common/storage/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

v1::TaskId Task(v1::TaskId::Role role, uint32_t index) {
  v1::TaskId task;
  task.set_role(role);
  task.set_index(index);
  return task;
}

// A shard of a table of two, with three floats in a row, of which two are weights; without keys there are no rows.
CheckpointShard Shard(uint32_t shard, const std::vector<uint64_t>& keys, const std::vector<float>& rows) {
  CheckpointShard result;
  result.record.set_chunk(2 + shard);
  result.record.set_table("users");
  result.record.set_shard(shard);
  result.record.set_shards(2);
  result.record.set_algorithm(v1::TableConfig::ROW_WISE_ADAGRAD);
  result.record.set_dimension(2);
  result.record.set_row_floats(3);
  result.record.set_rows(static_cast<int64_t>(keys.size()));
  result.record.set_version(30 + shard);
  result.keys = keys;
  result.rows = rows;
  return result;
}

// Half of a tensor of four elements, to which worker 0 has applied more steps than worker 1, and `shards`.
void WritePart(const std::string& directory, const v1::TaskId& task, float first, int64_t version,
               const std::vector<CheckpointShard>& shards = {}) {
  auto writer = CheckpointWriter::Create(directory, task);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::vector<float> values = {first, first + 1};
  CheckpointChunk chunk;
  chunk.record.set_chunk(task.index());
  chunk.record.set_tensor("first.weight");
  chunk.record.add_shape(2);
  chunk.record.add_shape(2);
  chunk.record.set_offset(2 * task.index());
  chunk.record.set_length(2);
  chunk.record.set_version(version);
  for (uint32_t worker : {0u, 1u}) {
    v1::Watermark* mark = chunk.record.add_watermarks();
    mark->set_worker(worker);
    mark->set_step(version - worker);
  }
  chunk.values = values.data();
  if (task.role() == v1::TaskId::SERVER) chunk.slots = {values.data()};
  ASSERT_TRUE((*writer)->Add(chunk).ok());
  for (const CheckpointShard& shard : shards) ASSERT_TRUE((*writer)->Add(shard).ok());
  v1::CheckpointManifest manifest;
  manifest.set_job_name("small");
  manifest.set_servers(2);
  manifest.mutable_plan()->set_generation(3);
  manifest.mutable_plan()->set_mode(v1::ASYNC);
  ASSERT_TRUE((*writer)->Finish(manifest).ok());
}

class CheckpointSummaryTest : public testing::Test {
 protected:
  CheckpointSummaryTest()
      : directory_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    WritePart(directory_, Task(v1::TaskId::SERVER, 0), 1, 20);
    WritePart(directory_, Task(v1::TaskId::SERVER, 1), std::numeric_limits<float>::infinity(), 22);
  }
  const std::string directory_;
};

TEST_F(CheckpointSummaryTest, TellsTensorsStepsAndSizes) {
  WritePart(directory_, Task(v1::TaskId::WORKER, 1), 0, 0);
  absl::StatusOr<CheckpointSummary> summary = SummarizeCheckpoint(directory_);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->job, "small");
  EXPECT_EQ(summary->servers, 2u);
  ASSERT_EQ(summary->tensors.size(), 1u);
  const CheckpointSummary::Tensor& tensor = summary->tensors[0];
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(tensor.elements, 4);
  EXPECT_EQ(tensor.chunks, 2);
  EXPECT_EQ(tensor.version_min, 20);
  EXPECT_EQ(tensor.version_max, 22);
  EXPECT_EQ(tensor.slots, 1);
  EXPECT_EQ(tensor.not_finite, 2);
  EXPECT_EQ(summary->steps, (std::map<uint32_t, int64_t>{{0, 21}, {1, 20}}));
  EXPECT_EQ(summary->worker_bytes.size(), 1u);
  const std::string text = FormatCheckpoint("final", *summary, summary->written + absl::Seconds(65.5));
  EXPECT_THAT(text,
              HasSubstr("Checkpoint final of job small, plan 3, ASYNC, written 1m5s ago\nSteps done: worker 0 21, "
                        "worker 1 20\n"));
  EXPECT_FALSE(summary->cut.has_value());
  EXPECT_THAT(text, HasSubstr("20 to 22"));
  EXPECT_THAT(text,
              HasSubstr("4 elements in 0.0 MiB of 2 servers; worker 1 has kept 0.0 MiB of its own; all checksums"));
}

class CheckpointSummaryOfTableTest : public CheckpointSummaryTest {
 protected:
  void WriteShards(std::vector<uint32_t> of_first_server, std::vector<uint32_t> of_second) {
    uint32_t server = 0;
    for (const std::vector<uint32_t>& numbers : {of_first_server, of_second}) {
      std::vector<CheckpointShard> shards;
      for (uint32_t shard : numbers) {
        shards.push_back(shard == 0 ? Shard(0, keys_, rows_) : Shard(shard, {}, {}));
        // Behind the tensor's.
        v1::Watermark* mark = shards.back().record.add_watermarks();
        mark->set_worker(0);
        mark->set_step(17);
      }
      WritePart(directory_, Task(v1::TaskId::SERVER, server), 1, 20, shards);
      ++server;
    }
  }
  const std::vector<uint64_t> keys_ = {0, 8};
  // State that is not finite is no weight.
  const std::vector<float> rows_ = {1, 2, std::numeric_limits<float>::infinity(), std::nanf(""), 5, 6};
};

TEST_F(CheckpointSummaryOfTableTest, TellsRowsAndSizes) {
  WriteShards({1}, {0});
  absl::StatusOr<CheckpointSummary> summary = SummarizeCheckpoint(directory_);
  ASSERT_TRUE(summary.ok()) << summary.status();
  ASSERT_EQ(summary->tables.size(), 1u);
  const CheckpointSummary::Table& table = summary->tables[0];
  EXPECT_EQ(table.name, "users");
  EXPECT_EQ(table.dimension, 2);
  EXPECT_EQ(table.shards, 2);
  EXPECT_EQ(table.rows, 2);
  EXPECT_EQ(table.bytes, 40u);
  EXPECT_EQ(table.version_min, 30);
  EXPECT_EQ(table.version_max, 31);
  EXPECT_EQ(table.not_finite, 1);
  EXPECT_EQ(summary->steps, (std::map<uint32_t, int64_t>{{0, 18}, {1, 20}})) << "shards have watermarks, too";
  const std::string text = FormatCheckpoint("final", *summary, summary->written);
  EXPECT_THAT(text, ContainsRegex("users +2 +ROW_WISE_ADAGRAD +2 +30 to 31 +2 +0.0 +1"));
  EXPECT_THAT(text, HasSubstr("4 elements and 2 rows in 0.0 MiB of 2 servers; all checksums"));
}

TEST_F(CheckpointSummaryOfTableTest, NamesATableThatIsNotWhole) {
  WriteShards({1}, {});
  absl::Status status = SummarizeCheckpoint(directory_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("table users: 1 of its 2 shards are there"));

  WriteShards({1, 0}, {0});
  status = SummarizeCheckpoint(directory_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("table users: shard 0 is there twice"));
}

TEST_F(CheckpointSummaryTest, FindsADamagedFile) {
  const std::string path = directory_ + "/server-1.data";
  std::string data = *ReadFile(path);
  data[3] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, data).ok());
  const absl::Status status = SummarizeCheckpoint(directory_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("server-1.data: its CRC is"));
}

TEST_F(CheckpointSummaryTest, NamesTheServerWhosePartIsMissing) {
  ASSERT_TRUE(RemoveFile(directory_ + "/server-0.manifest").ok());
  const absl::Status status = SummarizeCheckpoint(directory_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 0 of the checkpoint's 2"));
}

}  // namespace
}  // namespace rubato
