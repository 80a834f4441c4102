#include "coordinator/record/run_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

namespace rubato::coordinator {
namespace {

class RunFilesTest : public testing::Test {
 protected:
  RunFilesTest() {
    directory_ = testing::TempDir() + "/run-" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    config_.set_name("job");
    config_.set_run_directory(directory_);
  }
  std::string Read(const std::string& name) {
    std::ifstream file(directory_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  static v1::JournalRecord Record() {
    v1::JournalRecord record;
    record.mutable_header()->set_job_name("job");
    return record;
  }

  // A line that is "{}".
  static v1::RunRecordLine Line() { return {}; }

  std::string directory_;
  v1::JobConfig config_;
};

TEST_F(RunFilesTest, WritesConfigRecordAndJournal) {
  auto files = RunFiles::Open(config_, false);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_TRUE((*files)->AppendMetrics(Line()).ok());
  ASSERT_TRUE((*files)->AppendJournal(Record(), true).ok());
  EXPECT_EQ(Read("metrics.jsonl"), "{}\n");
  EXPECT_NE(Read("job.textproto").find("job"), std::string::npos);
  EXPECT_GT(Read("journal").size(), 8u);
}

TEST_F(RunFilesTest, RefusesTheDirectoryOfAnEarlierRun) {
  ASSERT_TRUE((*RunFiles::Open(config_, false))->AppendMetrics(Line()).ok());
  auto again = RunFiles::Open(config_, false);
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(again.status().message().find("--resume"), absl::string_view::npos);
}

TEST_F(RunFilesTest, EmptyFilesAreNoEarlierRun) {
  ASSERT_TRUE(RunFiles::Open(config_, false).ok());
  EXPECT_TRUE(RunFiles::Open(config_, false).ok());
}

TEST_F(RunFilesTest, ResumesWithWhatIsWhole) {
  {
    auto files = RunFiles::Open(config_, false);
    ASSERT_TRUE((*files)->AppendJournal(Record(), true).ok());
    ASSERT_TRUE((*files)->AppendMetrics(Line()).ok());
  }
  std::ofstream(directory_ + "/metrics.jsonl", std::ios::app) << "{\"prog";
  std::ofstream(directory_ + "/journal", std::ios::app) << "torn";
  auto files = RunFiles::Open(config_, true);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ((*files)->recovered().size(), 1u);
  ASSERT_TRUE((*files)->AppendMetrics(Line()).ok());
  EXPECT_EQ(Read("metrics.jsonl"), "{}\n{}\n");
}

TEST_F(RunFilesTest, ResumeBeginsAfreshWhereNothingWasJournalled) {
  { ASSERT_TRUE((*RunFiles::Open(config_, false))->AppendMetrics(Line()).ok()); }
  auto files = RunFiles::Open(config_, true);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE((*files)->recovered().empty());
  EXPECT_EQ(Read("metrics.jsonl"), "");
}

TEST_F(RunFilesTest, NamesADirectoryThatCannotBeMade) {
  config_.set_run_directory("/proc/none");
  EXPECT_NE(RunFiles::Open(config_, false).status().message().find("/proc/none"), absl::string_view::npos);
}

}  // namespace
}  // namespace rubato::coordinator
