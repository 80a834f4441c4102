#include "cli/replay/weight_comparison.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// A tensor "a" [2], and a table "words" with rows of two weights and one number of the optimizer's.
struct Written {
  std::vector<float> tensor = {1, 2};
  std::vector<uint64_t> keys = {5, 17, 40};
  std::vector<float> rows = {0.5f, 1.5f, 9, 2.5f, 3.5f, 9, 4.5f, 5.5f, 9};
  std::string table = "words";
};

class WeightComparisonTest : public testing::Test {
 protected:
  WeightComparisonTest()
      : directory_(JoinPath(
            testing::TempDir(),
            absl::StrCat("weight_comparison_", testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(directory_);
  }

  std::string Write(const std::string& name, const Written& written) {
    const std::string checkpoint = JoinPath(directory_, name);
    v1::TaskId task;
    task.set_role(v1::TaskId::SERVER);
    const auto writer = CheckpointWriter::Create(checkpoint, task);
    EXPECT_TRUE(writer.ok()) << writer.status();
    CheckpointChunk chunk;
    chunk.record.set_tensor("a");
    chunk.record.add_shape(2);
    chunk.record.set_length(2);
    chunk.values = written.tensor.data();
    EXPECT_TRUE((*writer)->Add(chunk).ok());
    v1::ShardRecord shard;
    shard.set_chunk(1);
    shard.set_table(written.table);
    shard.set_shards(1);
    shard.set_algorithm(v1::TableConfig::ROW_WISE_ADAGRAD);
    shard.set_dimension(2);
    shard.set_row_floats(3);
    shard.set_rows(static_cast<int64_t>(written.keys.size()));
    EXPECT_TRUE((*writer)->Add({.record = shard, .keys = written.keys, .rows = written.rows}).ok());
    v1::CheckpointManifest manifest;
    manifest.set_servers(1);
    const absl::Status finished = (*writer)->Finish(manifest);
    EXPECT_TRUE(finished.ok()) << finished;
    return checkpoint;
  }

  absl::StatusOr<WeightComparison> Compare(const Written& was, const Written& is) {
    return CompareWeights(Write("was", was), Write("is", is));
  }
  void Expect(const Written& is, int64_t elements, int64_t different, int64_t rows, const std::string& first) {
    const absl::StatusOr<WeightComparison> comparison = Compare({}, is);
    ASSERT_TRUE(comparison.ok()) << comparison.status();
    EXPECT_EQ(comparison->elements, elements);
    EXPECT_EQ(comparison->different, different);
    EXPECT_EQ(comparison->rows, rows);
    EXPECT_EQ(comparison->first_difference, first);
  }

  const std::string directory_;
};

TEST_F(WeightComparisonTest, TheSameBits) { Expect({}, 8, 0, 3, ""); }

TEST_F(WeightComparisonTest, NamesTheFirstWeightOfATensor) {
  Written is;
  is.tensor = {1, -2};
  is.rows[1] = 0;
  Expect(is, 8, 2, 3, "a[1] is -2, and was 2 in the run");
}

TEST_F(WeightComparisonTest, NamesTheFirstWeightOfARow) {
  Written is;
  is.rows[4] = 3.25f;
  is.rows[6] = 0;
  Expect(is, 8, 2, 3, "words[key 17][1] is 3.25, and was 3.5 in the run");
}

TEST_F(WeightComparisonTest, WhatTheOptimizerKeepsIsNoWeight) {
  Written is;
  is.rows[2] = 8;
  Expect(is, 8, 0, 3, "");
}

TEST_F(WeightComparisonTest, RowsThatOnlyOneHasDiffer) {
  Written is;
  is.keys = {5, 18, 40};
  Expect(is, 10, 4, 4, "words[key 17] is not there, and was in the run");
  is.keys = {4, 5, 17, 40, 41};
  is.rows.insert(is.rows.begin(), {7, 7, 9});
  is.rows.insert(is.rows.end(), {8, 8, 9});
  Expect(is, 12, 4, 5, "words[key 4] is there, and was not in the run");
}

TEST_F(WeightComparisonTest, AnotherModelIsAnError) {
  Written is;
  is.table = "names";
  const absl::Status status = Compare({}, is).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find("table words is not in the replay"), std::string::npos) << status;
}

}  // namespace
}  // namespace rubato
