#include "cli/predict/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/clock.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

// A column of numbers, one of keys of a table, and a linear layer of both.
constexpr char kJob[] = R"(
  name: "predict"
  cluster { workers: 1 }
  model {
    input_shape: 1
    tables { name: "places" dimension: 2 algorithm: ADAGRAD learning_rate: 0.1 initial_bound: 0.25 }
    layers { name: "out" linear { units: 1 } }
    loss: MEAN_SQUARED_ERROR
  }
  data {
    columns {
      train_paths: "nowhere.csv"
      label: "y"
      features { column: "x" }
      keys { columns: "place" }
    }
  }
  optimizer { algorithm: SGD learning_rate: 0.1 }
  consistency { mode: SYNC }
  training { batch_size: 8 epochs: 1 device: CPU }
  evaluation { batch_size: 2 }
)";
// Of "LAS" (docs/formats.md), and the row that the table has for it.
constexpr uint64_t kKey = 0xb93ddaa9158ebe85;
constexpr float kRow[] = {2, 3};

v1::ChunkRecord Chunk(uint32_t number, const std::string& tensor, std::vector<int64_t> shape, int64_t length) {
  v1::ChunkRecord record;
  record.set_chunk(number);
  record.set_tensor(tensor);
  for (const int64_t dimension : shape) record.add_shape(dimension);
  record.set_length(length);
  return record;
}

class PredictTest : public ::testing::Test {
 protected:
  PredictTest() : run_(JoinPath(::testing::TempDir(), "predict_run")) {
    std::filesystem::remove_all(run_);
    EXPECT_TRUE(MakeDirectories(run_).ok());
    EXPECT_TRUE(WriteFileAtomically(JoinPath(run_, "job.textproto"), kJob).ok());
    WriteCheckpoint("final", {10, 100, 1000, 0.5f});
  }

  // The layer's three weights and its bias.
  void WriteCheckpoint(const std::string& name, std::vector<float> weights) {
    v1::TaskId task;
    task.set_role(v1::TaskId::SERVER);
    auto writer = CheckpointWriter::Create(JoinPath(run_, "checkpoints/" + name), task);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->Add(CheckpointChunk{Chunk(0, "out.weight", {1, 3}, 3), weights.data(), {}}).ok());
    ASSERT_TRUE((*writer)->Add(CheckpointChunk{Chunk(1, "out.bias", {1}, 1), weights.data() + 3, {}}).ok());
    CheckpointShard shard;
    shard.record.set_chunk(2);
    shard.record.set_table("places");
    shard.record.set_shards(1);
    shard.record.set_algorithm(v1::TableConfig::SGD);
    shard.record.set_dimension(2);
    shard.record.set_row_floats(2);
    shard.record.set_rows(1);
    shard.keys = absl::MakeConstSpan(&kKey, 1);
    shard.rows = kRow;
    ASSERT_TRUE((*writer)->Add(shard).ok());
    v1::CheckpointManifest manifest;
    manifest.set_job_name("predict");
    manifest.set_servers(1);
    manifest.mutable_plan()->set_generation(1);
    ASSERT_TRUE((*writer)->Finish(manifest).ok());
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(::testing::TempDir(), name);
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }

  absl::StatusOr<PredictReport> Run(const std::string& input, std::vector<std::string> overrides = {}) {
    out_.str("");
    PredictOptions options = {.run_directory = run_,
                              .checkpoint = checkpoint_,
                              .input = input,
                              .overrides = std::move(overrides),
                              .factory = {},
                              .log = &log_};
    return Predict(options, &out_);
  }

  std::string Error(const std::string& input, std::vector<std::string> overrides = {}) {
    return std::string(Run(input, std::move(overrides)).status().message());
  }

  // The contents of every file of the run.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(run_)) {
      if (entry.is_regular_file()) files[entry.path().string()] = *ReadFile(entry.path().string());
    }
    return files;
  }

  const std::string run_;
  std::string checkpoint_;
  std::ostringstream out_;
  RealClock clock_;
  Logger log_{"predict", &clock_, {.quiet = true}};
};

TEST_F(PredictTest, WritesALineForEachExample) {
  const auto report = Run(Write("three.csv", "place,y,x\nLAS,0,1\nLAS,5,-2\nLAS,0,\n"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->checkpoint, "final");
  EXPECT_EQ(report->examples, 3);
  EXPECT_EQ(out_.str(), "3210.5\n3180.5\n3200.5\n");
}

TEST_F(PredictTest, ChangesNothingOfTheRunAlsoForNewKeys) {
  const auto before = Files();
  ASSERT_EQ(before.size(), 3u);
  const std::string input = Write("new.csv", "place,y,x\nPHL,0,0\nSAV,0,0\nPHL,0,0\n");
  ASSERT_TRUE(Run(input).ok());
  EXPECT_EQ(Files(), before);
  const std::vector<std::string> lines = absl::StrSplit(out_.str(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], lines[2]);
  EXPECT_NE(lines[0], lines[1]);
  for (const std::string& line : lines) {
    double number = 0;
    ASSERT_TRUE(absl::SimpleAtod(line, &number)) << line;
    EXPECT_LE(std::abs(number - 0.5), 1100 * 0.25) << line;
  }
  const std::string first = out_.str();
  ASSERT_TRUE(Run(input).ok());
  EXPECT_EQ(out_.str(), first);
}

TEST_F(PredictTest, TakesTheCheckpointThatIsNamed) {
  WriteCheckpoint("step0", {0, 0, 0, 7});
  const std::string input = Write("one.csv", "place,y,x\nLAS,0,1\n");
  ASSERT_TRUE(Run(input).ok());
  EXPECT_EQ(out_.str(), "3210.5\n");
  checkpoint_ = "step0";
  EXPECT_EQ(Run(input)->checkpoint, "step0");
  EXPECT_EQ(out_.str(), "7\n");
  checkpoint_ = "step5";
  EXPECT_EQ(Run(input).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Error(input), HasSubstr("there is no checkpoint step5; there are: "));
}

TEST_F(PredictTest, ErrorsNameWhatIsWrong) {
  const std::string input = Write("bad.csv", "place,y,x\nLAS,0,?\n");
  EXPECT_EQ(Error(input), input + ":2: column \"x\": value \"?\"; allowed: a number, or nothing");
  EXPECT_EQ(Run("no/such/file").status().code(), absl::StatusCode::kNotFound);
  const std::string good = Write("good.csv", "place,y,x\nLAS,0,1\n");
  EXPECT_THAT(Error(good, {"model.tables[0].dimension=3"}), HasSubstr("; expected: 1x4, as the run's config says"));
  EXPECT_THAT(Error(good, {"model.layers[0].name=in"}), HasSubstr("has no tensor in.weight; expected: 1x3"));
  EXPECT_THAT(Error(good, {"model.tables[0].name=others"}), HasSubstr("has no table others"));
  EXPECT_THAT(Error(good, {"data.columns=", "model.tables=", "data.teacher={train_examples: 5}"}),
              HasSubstr("allowed: a run of data.csv, data.cifar, data.criteo, data.columns or data.libsvm"));
  EXPECT_TRUE(out_.str().empty());
}

TEST_F(PredictTest, ModelsOfClientsAreTheirs) {
  ASSERT_TRUE(WriteFileAtomically(JoinPath(run_, "job.textproto"),
                                  "name: 'client' cluster { workers: 1 } consistency { mode: SYNC }")
                  .ok());
  EXPECT_EQ(Run("x").status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace rubato
