// Shards of tables in checkpoints: what is written, what is refused, and how they come back.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/storage/checkpoint.h"
#include "common/storage/checkpoint_restorer.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr uint32_t kShards = 4, kDimension = 2, kRowFloats = 3;

struct Rows {
  std::vector<uint64_t> keys;
  std::vector<float> values;
  bool operator==(const Rows&) const = default;
};

Rows MakeRows(std::vector<uint64_t> keys) {
  Rows rows;
  for (const uint64_t key : keys) {
    for (uint32_t i = 0; i < kRowFloats; ++i) rows.values.push_back(static_cast<float>(10 * (key % 1000) + i));
  }
  rows.keys = std::move(keys);
  return rows;
}

v1::ShardRecord Record(uint32_t shard, size_t rows) {
  v1::ShardRecord record;
  record.set_chunk(10 + shard);
  record.set_table("users");
  record.set_shard(shard);
  record.set_shards(kShards);
  record.set_algorithm(v1::TableConfig::ROW_WISE_ADAGRAD);
  record.set_dimension(kDimension);
  record.set_row_floats(kRowFloats);
  record.set_rows(static_cast<int64_t>(rows));
  record.set_version(100 + shard);
  v1::Watermark& watermark = *record.add_watermarks();
  watermark.set_worker(3);
  watermark.set_step(77);
  return record;
}

// Servers 0 and 1 have a half each of "a" [10], whose values are 0 to 9, and of "users" shards 0 and 2, and 3 and 1.
// Shard 2 is without rows.
class CheckpointShardsTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = JoinPath(
        testing::TempDir(),
        absl::StrCat("checkpoint_shards_test_", testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(directory_);
    rows_ = {MakeRows({0, 5, ~uint64_t{0}}), MakeRows({7}), {}, MakeRows({1, 2, 3, uint64_t{1} << 63})};
    WriteAll();
  }

  void WriteAll(uint64_t cut = 0) {
    Write(0, {0, 2}, cut);
    Write(1, {3, 1}, cut);
  }
  std::unique_ptr<CheckpointWriter> Begin(uint32_t server) {
    v1::TaskId task;
    task.set_role(v1::TaskId::SERVER);
    task.set_index(server);
    auto writer = CheckpointWriter::Create(directory_, task);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return *std::move(writer);
  }
  void Write(uint32_t server, const std::vector<uint32_t>& shards, uint64_t cut = 0) {
    const auto writer = Begin(server);
    std::vector<float> values;
    for (uint32_t i = 0; i < 5; ++i) values.push_back(static_cast<float>(5 * server + i));
    CheckpointChunk chunk;
    chunk.record.set_chunk(server);
    chunk.record.set_tensor("a");
    chunk.record.add_shape(10);
    chunk.record.set_offset(5 * server);
    chunk.record.set_length(5);
    chunk.values = values.data();
    ASSERT_TRUE(writer->Add(chunk).ok());
    for (const uint32_t shard : shards) {
      const Rows& rows = rows_[shard];
      const absl::Status added = writer->Add({Record(shard, rows.keys.size()), rows.keys, rows.values});
      ASSERT_TRUE(added.ok()) << added;
    }
    Finish(*writer, cut);
  }
  static void Finish(CheckpointWriter& writer, uint64_t cut = 0) {
    v1::CheckpointManifest manifest;
    manifest.set_servers(2);
    if (cut != 0) {
      manifest.mutable_cut()->set_id(cut);
      manifest.mutable_cut()->set_name("step150");
    }
    ASSERT_TRUE(writer.Finish(manifest).ok());
  }

  // Rewrites a server's manifest.
  void Change(uint32_t server, const std::function<void(v1::CheckpointManifest&)>& change) {
    const std::string path = JoinPath(directory_, absl::StrCat("server-", server, ".manifest"));
    v1::CheckpointManifest manifest;
    ASSERT_TRUE(manifest.ParseFromString(*ReadFile(path)));
    change(manifest);
    ASSERT_TRUE(WriteFileAtomically(path, manifest.SerializeAsString()).ok());
  }

  CheckpointRestorer::Shard Wanted(uint32_t shard) {
    return {.table = "users",
            .shard = shard,
            .shards = kShards,
            .algorithm = v1::TableConfig::ROW_WISE_ADAGRAD,
            .dimension = kDimension,
            .row_floats = kRowFloats,
            .restore = [this](const CheckpointShard& shard) {
              const v1::ShardRecord& record = shard.record;
              restored_[record.shard()].push_back(
                  {{shard.keys.begin(), shard.keys.end()}, {shard.rows.begin(), shard.rows.end()}});
              records_[record.shard()] = record;
              push_counts_[record.shard()].assign(shard.push_counts.begin(), shard.push_counts.end());
              return absl::OkStatus();
            }};
  }
  // Reads shard 0, which is as SetUp has written it.
  void ExpectTheFirstShard() {
    CheckpointRestorer restorer;
    restorer.AddShard(Wanted(0));
    const absl::Status read = restorer.ReadServers(directory_);
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_EQ(restored_[0], std::vector<Rows>{rows_[0]});
  }
  void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& text) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_NE(status.message().find(text), absl::string_view::npos) << status << "\nexpected: " << text;
  }
  // What reading shard 0 comes to, after `change` of what the job has.
  void ExpectRefusal(const std::function<void(CheckpointRestorer::Shard&)>& change, const std::string& text) {
    restored_.clear();
    CheckpointRestorer restorer;
    CheckpointRestorer::Shard shard = Wanted(0);
    change(shard);
    restorer.AddShard(std::move(shard));
    ExpectError(restorer.ReadServers(directory_), absl::StatusCode::kFailedPrecondition, text);
    EXPECT_TRUE(restored_.empty());
  }

  std::string directory_;
  // By shard.
  std::vector<Rows> rows_;
  // What the calls brought.
  std::map<uint32_t, std::vector<Rows>> restored_;
  std::map<uint32_t, v1::ShardRecord> records_;
  std::map<uint32_t, std::vector<uint64_t>> push_counts_;
};

TEST_F(CheckpointShardsTest, TwoServersPartsComeBackOnThree) {
  for (const std::vector<uint32_t>& shards : std::vector<std::vector<uint32_t>>{{1, 0}, {2}, {3}}) {
    CheckpointRestorer restorer;
    restored_.clear();
    std::vector<float> values(10);
    restorer.Add({"a", {10}, 0, 10, values.data(), {}});
    for (const uint32_t shard : shards) restorer.AddShard(Wanted(shard));
    const absl::Status read = restorer.ReadServers(directory_);
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_EQ(restored_.size(), shards.size());
    for (const uint32_t shard : shards) {
      EXPECT_EQ(restored_[shard], std::vector<Rows>{rows_[shard]}) << shard;
      EXPECT_EQ(records_[shard].version(), 100 + shard);
      EXPECT_EQ(records_[shard].watermarks(0).step(), 77);
    }
    EXPECT_EQ(values, (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

TEST_F(CheckpointShardsTest, ManifestsListThemByChunk) {
  const absl::StatusOr<CheckpointPart> part = ReadCheckpointPart(directory_, v1::TaskId::SERVER, 1);
  ASSERT_TRUE(part.ok()) << part.status();
  const v1::CheckpointManifest& manifest = part->manifest;
  EXPECT_EQ(manifest.format_version(), 3u);
  ASSERT_EQ(manifest.shards_size(), 2);
  EXPECT_EQ(manifest.shards(0).chunk(), 11u);
  EXPECT_EQ(manifest.shards(1).chunk(), 13u);
  std::vector<uint64_t> keys(4);
  part->Copy(manifest.shards(1).keys_at(), 4, keys.data());
  EXPECT_EQ(keys, rows_[3].keys);
  EXPECT_EQ(manifest.shards(1).keys_at() % 64, 0u);
}

TEST_F(CheckpointShardsTest, OneWithoutRowsTakesNoBytes) {
  const uint64_t before = ReadCheckpointManifest(directory_, v1::TaskId::SERVER, 0)->data_bytes();
  Write(0, {0});
  EXPECT_EQ(ReadCheckpointManifest(directory_, v1::TaskId::SERVER, 0)->data_bytes(), before);
}

TEST_F(CheckpointShardsTest, WithoutThemTheVersionIsAsItWas) {
  Write(0, {});
  EXPECT_EQ(ReadCheckpointManifest(directory_, v1::TaskId::SERVER, 0)->format_version(), 1u);
  Write(0, {}, 5);
  EXPECT_EQ(ReadCheckpointManifest(directory_, v1::TaskId::SERVER, 0)->format_version(), 2u);
  Write(0, {2}, 5);
  EXPECT_EQ(ReadCheckpointManifest(directory_, v1::TaskId::SERVER, 0)->format_version(), 3u);
}

TEST_F(CheckpointShardsTest, TensorsAreReadWithoutThem) {
  const auto checkpoint = ReadCheckpoint(directory_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ASSERT_EQ(checkpoint->tensors.size(), 1u);
  EXPECT_EQ(checkpoint->tensors[0].values, (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(CheckpointShardsTest, TablesAreReadByKeyWithoutTheirState) {
  const auto tables = ReadCheckpointTables(directory_);
  ASSERT_TRUE(tables.ok()) << tables.status();
  ASSERT_EQ(tables->size(), 1u);
  const NamedTable& users = tables->front();
  EXPECT_EQ(users.name, "users");
  EXPECT_EQ(users.dimension, kDimension);
  EXPECT_EQ(users.keys, (std::vector<uint64_t>{0, 1, 2, 3, 5, 7, uint64_t{1} << 63, ~uint64_t{0}}));
  ASSERT_EQ(users.rows.size(), users.keys.size() * kDimension);
  for (size_t i = 0; i < users.keys.size(); ++i) {
    for (uint32_t k = 0; k < kDimension; ++k) {
      EXPECT_EQ(users.rows[i * kDimension + k], static_cast<float>(10 * (users.keys[i] % 1000) + k));
    }
  }
}

TEST_F(CheckpointShardsTest, TablesThatAreNotWholeAreDataLoss) {
  Write(1, {3});
  ExpectError(ReadCheckpointTables(directory_).status(), absl::StatusCode::kDataLoss,
              "table users: shard 1 is missing");
  Write(1, {0, 3, 1});
  ExpectError(ReadCheckpointTables(directory_).status(), absl::StatusCode::kDataLoss,
              "table users: shard 0 is there twice");
  WriteAll();
  Change(1, [](v1::CheckpointManifest& manifest) { manifest.mutable_shards(0)->set_dimension(kDimension - 1); });
  ExpectError(ReadCheckpointTables(directory_).status(), absl::StatusCode::kDataLoss,
              "with rows of 1 weights, another says 4 with 2");
}

// A bad manifest cannot have memory for tensors that only tables take.
TEST_F(CheckpointShardsTest, ATensorIsNoLargerThanWhatTablesLeave) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < 10000; ++i) keys.push_back(i);
  rows_[0] = MakeRows(keys);
  Write(0, {0});
  for (const uint32_t server : {0u, 1u}) {
    Change(server, [](v1::CheckpointManifest& manifest) { manifest.mutable_chunks(0)->set_shape(0, 5000); });
  }
  ExpectError(ReadCheckpoint(directory_).status(), absl::StatusCode::kDataLoss, "the tensor has 5000 elements");
}

TEST_F(CheckpointShardsTest, AWriterRefusesArraysOfAnotherLength) {
  const auto writer = Begin(0);
  const Rows& rows = rows_[0];
  ExpectError(writer->Add({Record(0, 2), rows.keys, rows.values}), absl::StatusCode::kInvalidArgument,
              "shard 0 of users: 3 keys and 9 float32; its record says 2 rows of 3");
  ExpectError(writer->Add({Record(0, 3), rows.keys, absl::MakeConstSpan(rows.values).subspan(1)}),
              absl::StatusCode::kInvalidArgument, "3 keys and 8 float32");
  v1::ShardRecord record = Record(0, 3);
  record.set_rows(-1);
  ExpectError(writer->Add({record, rows.keys, rows.values}), absl::StatusCode::kInvalidArgument, "says -1 rows");
}

TEST_F(CheckpointShardsTest, CountsOfPushesComeBack) {
  const auto writer = Begin(0);
  v1::ShardRecord record = Record(0, 3);
  const std::vector<uint64_t> counts = {7, ~uint64_t{0}};
  ExpectError(writer->Add({record, rows_[0].keys, rows_[0].values, counts}), absl::StatusCode::kInvalidArgument,
              "shard 0 of users: 16 bytes of counts; its record says 0");
  record.set_push_counts_bytes(16);
  ASSERT_TRUE(writer->Add({record, rows_[0].keys, rows_[0].values, counts}).ok());
  Finish(*writer);
  ExpectTheFirstShard();
  EXPECT_EQ(push_counts_[0], counts);
}

TEST_F(CheckpointShardsTest, ArraysMayBeWrittenInPiecesAndBeginAnywhere) {
  const auto writer = Begin(0);
  ASSERT_TRUE(writer->Append("odd").ok());
  const auto bytes_of = [](const auto& array) {
    return absl::string_view(reinterpret_cast<const char*>(array.data()), sizeof(array[0]) * array.size());
  };
  v1::ShardRecord record = Record(0, 3);
  record.set_keys_at(writer->bytes());
  ASSERT_TRUE(writer->Append(bytes_of(rows_[0].keys)).ok());
  const absl::StatusOr<uint64_t> at = writer->BeginArray(36);
  ASSERT_TRUE(at.ok());
  EXPECT_EQ(*at, 64u);
  record.set_rows_at(*at);
  ASSERT_TRUE(writer->Append(bytes_of(rows_[0].values).substr(0, 10)).ok());
  ASSERT_TRUE(writer->Append(bytes_of(rows_[0].values).substr(10)).ok());
  writer->AddRecord(record);
  Finish(*writer);
  ExpectTheFirstShard();
}

TEST_F(CheckpointShardsTest, ImpossibleNumbersInAManifestAreDataLoss) {
  const std::vector<std::pair<std::string, std::function<void(v1::ShardRecord&)>>> changes = {
      {"shard 0 of users: dimension 0 with row_floats 3 is impossible", [](auto& s) { s.set_dimension(0); }},
      {"dimension 4097", [](auto& s) { s.set_dimension(4097), s.set_row_floats(4097); }},
      {"dimension 4294967295", [](auto& s) { s.set_dimension(UINT32_MAX), s.set_row_floats(UINT32_MAX); }},
      {"dimension 2 with row_floats 1", [](auto& s) { s.set_row_floats(1); }},
      {"dimension 2 with row_floats 0", [](auto& s) { s.set_row_floats(0); }},
      {"dimension 2 with row_floats 17", [](auto& s) { s.set_row_floats(17); }},
      {"shard 0 of users: is one of 0 shards; a table has a power of two of them, at most 256",
       [](auto& s) { s.set_shards(0); }},
      {"is one of 3 shards", [](auto& s) { s.set_shards(3); }},
      {"is one of 512 shards", [](auto& s) { s.set_shards(512); }},
      {"shard 4 of users: is one of 4 shards", [](auto& s) { s.set_shard(4); }},
      {"shard 0 of users: -1 rows of 12 bytes are not inside the data", [](auto& s) { s.set_rows(-1); }},
      {"rows of 12 bytes are not inside the data", [](auto& s) { s.set_rows(1000); }},
      {"9223372036854775807 rows", [](auto& s) { s.set_rows(INT64_MAX); }},
      // Whose products with the bytes of a key and of a row are 0 and 12 modulo 2^64.
      {"2305843009213693952 rows", [](auto& s) { s.set_rows(int64_t{1} << 61); }},
      {"4611686018427387905 rows", [](auto& s) { s.set_rows((int64_t{1} << 62) + 1); }},
      {"keys_at 1000000 and its 24 bytes end after the data", [](auto& s) { s.set_keys_at(1000000); }},
      {"keys_at 18446744073709551612", [](auto& s) { s.set_keys_at(~uint64_t{0} - 3); }},
      {"rows_at 1000000 and its 36 bytes end after the data", [](auto& s) { s.set_rows_at(1000000); }},
      {"rows_at 18446744073709551612", [](auto& s) { s.set_rows_at(~uint64_t{0} - 3); }},
      {"push_counts_at 0 and its 1000000 bytes end after the data",
       [](auto& s) { s.set_push_counts_bytes(1'000'000); }},
      {"push_counts_bytes 9 is no multiple of 8", [](auto& s) { s.set_push_counts_bytes(9); }},
  };
  for (const auto& [text, change] : changes) {
    Write(0, {0, 2});
    Change(0, [&](v1::CheckpointManifest& manifest) { change(*manifest.mutable_shards(0)); });
    ExpectError(ReadCheckpoint(directory_).status(), absl::StatusCode::kDataLoss, text);
    ExpectError(ReadCheckpointPart(directory_, v1::TaskId::SERVER, 0).status(), absl::StatusCode::kDataLoss, text);
  }
}

TEST_F(CheckpointShardsTest, TheLastRowMayEndWithTheData) {
  Change(0, [](v1::CheckpointManifest& manifest) {
    EXPECT_EQ(manifest.shards(0).rows_at() + 36, manifest.data_bytes());
    manifest.mutable_shards(0)->set_rows_at(manifest.shards(0).rows_at() + 1);
  });
  ExpectError(ReadCheckpoint(directory_).status(), absl::StatusCode::kDataLoss, "rows_at");
}

// Errors, or other rows; nothing worse.
TEST_F(CheckpointShardsTest, AnyByteOfAManifestMayBeAnother) {
  const std::string path = JoinPath(directory_, "server-0.manifest");
  const std::string good = *ReadFile(path);
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {0x01, 0x80}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
      CheckpointRestorer restorer;
      for (uint32_t shard = 0; shard < kShards; ++shard) restorer.AddShard(Wanted(shard));
      restorer.ReadServers(directory_).IgnoreError();
      ReadCheckpoint(directory_).status().IgnoreError();
    }
  }
}

TEST_F(CheckpointShardsTest, KeysOutOfOrderAreDataLossAndNamed) {
  for (const auto& [keys, text] : std::vector<std::pair<std::vector<uint64_t>, std::string>>{
           {{3, 9, 8}, "shard 0 of users: key 8 at 2 is out of order"},
           {{3, 3, 8}, "shard 0 of users: key 3 at 1 comes twice"}}) {
    rows_[0] = MakeRows(keys);
    Write(0, {0, 2});
    CheckpointRestorer restorer;
    restorer.AddShard(Wanted(0));
    ExpectError(restorer.ReadServers(directory_), absl::StatusCode::kDataLoss, text);
    EXPECT_TRUE(restored_.empty());
  }
}

TEST_F(CheckpointShardsTest, ATableOfAnotherConfigIsNamed) {
  ExpectRefusal([](auto& shard) { shard.shards = 8; }, "users: 4 shards, the job's model.tables.shards is 8");
  ExpectRefusal([](auto& shard) { shard.shards = 8, shard.shard = 7; }, "users: 4 shards");
  ExpectRefusal([](auto& shard) { shard.algorithm = v1::TableConfig::SGD; },
                "users: ROW_WISE_ADAGRAD, the job's model.tables.algorithm is SGD");
  ExpectRefusal([](auto& shard) { shard.dimension = 3; }, "users: dimension 2, the job's model.tables.dimension is 3");
  ExpectRefusal([](auto& shard) { shard.row_floats = 4; }, "users: rows of 3 float32, with the job's");
  Change(0, [](v1::CheckpointManifest& manifest) {
    manifest.mutable_shards(0)->set_algorithm(static_cast<v1::TableConfig::Algorithm>(99));
  });
  ExpectRefusal([](auto&) {}, "users: algorithm 99, the job's model.tables.algorithm is ROW_WISE_ADAGRAD");
}

TEST_F(CheckpointShardsTest, OneThatIsMissingIsNamed) {
  Write(1, {3});
  CheckpointRestorer restorer;
  for (const uint32_t shard : {0u, 1u}) restorer.AddShard(Wanted(shard));
  ExpectError(restorer.ReadServers(directory_), absl::StatusCode::kFailedPrecondition,
              "of users, it lacks shard 1 of 4");
  ExpectRefusal([](auto& shard) { shard.table = "items"; }, "of items, it lacks shard 0 of 4");
}

TEST_F(CheckpointShardsTest, OneThatIsThereTwiceIsDataLoss) {
  Write(1, {0, 3, 1});
  CheckpointRestorer restorer;
  restorer.AddShard(Wanted(0));
  ExpectError(restorer.ReadServers(directory_), absl::StatusCode::kDataLoss, "shard 0 of users: is there twice");
  // Nobody wants it.
  restorer = {};
  restorer.AddShard(Wanted(3));
  EXPECT_TRUE(restorer.ReadServers(directory_).ok());
}

TEST_F(CheckpointShardsTest, WhatIsMissingOfACutIsRestoredWhenItIsThere) {
  WriteAll(5);
  const v1::CheckpointManifest there = *ReadCheckpointManifest(directory_, v1::TaskId::SERVER, 0);
  const v1::CheckpointManifest missing = *ReadCheckpointManifest(directory_, v1::TaskId::SERVER, 1);
  const std::string path = JoinPath(directory_, "server-1.manifest");
  ASSERT_TRUE(RemoveFile(path).ok());
  CheckpointRestorer restorer;
  for (const uint32_t shard : {0u, 1u}) restorer.AddShard(Wanted(shard));
  EXPECT_TRUE(restorer.Lacks(there));
  ExpectError(restorer.ReadServers(directory_, 4), absl::StatusCode::kFailedPrecondition, "cut 4 is wanted");
  ExpectError(restorer.ReadServers(directory_, 5), absl::StatusCode::kNotFound, "server 1 of the checkpoint's 2");
  EXPECT_FALSE(restorer.Lacks(there));
  EXPECT_TRUE(restorer.Lacks(missing));
  ASSERT_TRUE(WriteFileAtomically(path, missing.SerializeAsString()).ok());
  const absl::Status read = restorer.ReadServers(directory_, 5);
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_FALSE(restorer.Lacks(missing));
  // Once each.
  EXPECT_EQ(restored_[0], std::vector<Rows>{rows_[0]});
  EXPECT_EQ(restored_[1], std::vector<Rows>{rows_[1]});
}

TEST_F(CheckpointShardsTest, APartThatIsMissingMattersWhereAShardIsInIt) {
  WriteAll(5);
  ASSERT_TRUE(RemoveFile(JoinPath(directory_, "server-1.manifest")).ok());
  CheckpointRestorer restorer;
  for (const uint32_t shard : {0u, 2u}) restorer.AddShard(Wanted(shard));
  const absl::Status read = restorer.ReadServers(directory_, 5);
  EXPECT_TRUE(read.ok()) << read;
}

TEST_F(CheckpointShardsTest, AnErrorOfWhoTakesAShardIsTold) {
  CheckpointRestorer restorer;
  CheckpointRestorer::Shard shard = Wanted(0);
  shard.restore = [](const auto&...) { return absl::ResourceExhaustedError("no room"); };
  restorer.AddShard(std::move(shard));
  ExpectError(restorer.ReadServers(directory_), absl::StatusCode::kResourceExhausted, "no room");
  EXPECT_TRUE(restorer.Lacks(*ReadCheckpointManifest(directory_, v1::TaskId::SERVER, 0)));
}

TEST_F(CheckpointShardsTest, ACopyHasThem) {
  const v1::CheckpointManifest manifest = *ReadCheckpointManifest(directory_, v1::TaskId::SERVER, 0);
  const std::string data = *ReadFile(JoinPath(directory_, "server-0.data"));
  const std::string bytes = *ReadFile(JoinPath(directory_, "server-0.manifest"));
  const auto writer = Begin(0);
  ASSERT_TRUE(writer->Copy(data).ok());
  ASSERT_TRUE(writer->FinishCopy(manifest).ok());
  EXPECT_EQ(*ReadFile(JoinPath(directory_, "server-0.manifest")), bytes);
}

}  // namespace
}  // namespace rubato
