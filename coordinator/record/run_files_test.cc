#include "coordinator/record/run_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/storage/cut_record.h"
#include "common/storage/file.h"
#include "coordinator/record/file_size_limit.h"

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
  auto files = RunFiles::Open(config_, false, "boot");
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_TRUE((*files)->AppendMetrics(Line()).ok());
  ASSERT_TRUE((*files)->AppendJournal(Record(), true).ok());
  EXPECT_EQ(Read("metrics.jsonl"), "{}\n");
  EXPECT_NE(Read("job.textproto").find("job"), std::string::npos);
  EXPECT_GT(Read("journal").size(), 8u);
}

TEST_F(RunFilesTest, RefusesTheDirectoryOfAnEarlierRun) {
  ASSERT_TRUE((*RunFiles::Open(config_, false, "boot"))->AppendMetrics(Line()).ok());
  auto again = RunFiles::Open(config_, false, "boot");
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(again.status().message().find("--resume"), absl::string_view::npos);
  EXPECT_EQ(RunFiles::CheckNew(config_), again.status());
}

TEST_F(RunFilesTest, EmptyFilesAreNoEarlierRun) {
  EXPECT_TRUE(RunFiles::CheckNew(config_).ok());
  ASSERT_TRUE(RunFiles::Open(config_, false, "boot").ok());
  EXPECT_TRUE(RunFiles::Open(config_, false, "boot").ok());
}

TEST_F(RunFilesTest, ResumesWithWhatIsWhole) {
  {
    auto files = RunFiles::Open(config_, false, "boot");
    ASSERT_TRUE((*files)->AppendJournal(Record(), true).ok());
    ASSERT_TRUE((*files)->AppendMetrics(Line()).ok());
  }
  std::ofstream(directory_ + "/metrics.jsonl", std::ios::app) << "{\"prog";
  std::ofstream(directory_ + "/journal", std::ios::app) << "torn";
  auto files = RunFiles::Open(config_, true, "boot");
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ((*files)->recovered().size(), 1u);
  ASSERT_TRUE((*files)->AppendMetrics(Line()).ok());
  EXPECT_EQ(Read("metrics.jsonl"), "{}\n{}\n");
}

TEST_F(RunFilesTest, ResumeBeginsAfreshWhereNothingWasJournalled) {
  { ASSERT_TRUE((*RunFiles::Open(config_, false, "boot"))->AppendMetrics(Line()).ok()); }
  auto files = RunFiles::Open(config_, true, "boot");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE((*files)->recovered().empty());
  EXPECT_EQ(Read("metrics.jsonl"), "");
}

TEST_F(RunFilesTest, ALineThatCannotBeWrittenIsLeftOutAndTheNextOneIsNot) {
  auto files = RunFiles::Open(config_, false, "boot");
  ASSERT_TRUE((*files)->AppendMetrics(Line()).ok());
  {
    FileSizeLimit full(5);
    EXPECT_EQ((*files)->AppendMetrics(Line()).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(Read("metrics.jsonl"), "{}\n");
  }
  ASSERT_TRUE((*files)->AppendMetrics(Line()).ok());
  EXPECT_EQ(Read("metrics.jsonl"), "{}\n{}\n");
}

TEST_F(RunFilesTest, ReadsItsJournalBackAndReplacesIt) {
  auto files = RunFiles::Open(config_, false, "boot");
  ASSERT_TRUE((*files)->AppendJournal(Record(), true).ok());
  ASSERT_TRUE((*files)->AppendJournal(Record(), false).ok());
  ASSERT_EQ((*files)->ReadBackJournal()->size(), 2u);
  ASSERT_TRUE((*files)->ReplaceJournal({Record()}).ok());
  ASSERT_EQ((*files)->ReadBackJournal()->size(), 1u);
  EXPECT_EQ((*files)->ReadBackJournal()->at(0).header().job_name(), "job");
}

TEST_F(RunFilesTest, OnlyOneCoordinatorHasThem) {
  auto files = RunFiles::Open(config_, false, "boot");
  ASSERT_TRUE((*files)->AppendJournal(Record(), true).ok());
  const absl::Status second = RunFiles::Open(config_, true, "boot").status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(second.message().find("another coordinator (process "), absl::string_view::npos) << second;
}

TEST_F(RunFilesTest, WritesRecordsOfCutsWhereTheCheckpointsAre) {
  config_.mutable_checkpoint()->set_directory(directory_ + "/elsewhere");
  auto files = RunFiles::Open(config_, false, "boot");
  v1::CutRecord record;
  record.mutable_cut()->set_id(3);
  record.mutable_cut()->set_name("step150");
  record.add_servers(0);
  ASSERT_TRUE((*files)->WriteCutRecord("step150", record).ok());
  const auto read = ReadCutRecord(directory_ + "/elsewhere/step150");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->cut().id(), 3u);
  EXPECT_EQ(*ListDirectory(directory_ + "/elsewhere/step150"), std::vector<std::string>{"cut"});
  EXPECT_TRUE((*files)->WriteCutRecord("stopped", record).ok());
  for (const char* name : {"", "..", "step", "step1/../../x", "final", "step-1", "step01", "stepx"}) {
    EXPECT_EQ((*files)->WriteCutRecord(name, record).code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST_F(RunFilesTest, RemovesTheRecordsOfOtherCutsAndWhatIsEmptyThen) {
  auto files = RunFiles::Open(config_, false, "boot");
  EXPECT_TRUE((*files)->RemoveCutRecords({}).ok());
  v1::CutRecord record;
  record.mutable_cut()->set_id(1);
  for (const char* name : {"step5", "step10", "step15", "stopped"}) {
    ASSERT_TRUE((*files)->WriteCutRecord(name, record).ok());
  }
  const std::string checkpoints = directory_ + "/checkpoints";
  std::ofstream(checkpoints + "/step10/server-0.data") << "x";
  std::ofstream(checkpoints + "/step20") << "not a directory";
  ASSERT_TRUE(MakeDirectories(checkpoints + "/step0").ok());
  ASSERT_TRUE(MakeDirectories(checkpoints + "/mine").ok());
  ASSERT_TRUE((*files)->RemoveCutRecords({"step15"}).ok());
  EXPECT_EQ(*ListDirectory(checkpoints),
            (std::vector<std::string>{"mine", "step0", "step10", "step15", "step20", "stopped"}));
  EXPECT_EQ(*ListDirectory(checkpoints + "/step10"), std::vector<std::string>{"server-0.data"});
  EXPECT_TRUE(FileExists(checkpoints + "/step15/cut"));
  EXPECT_TRUE(FileExists(checkpoints + "/stopped/cut"));
  std::filesystem::remove(checkpoints + "/step10/server-0.data");
  ASSERT_TRUE((*files)->RemoveCutRecords({"step15"}).ok());
  EXPECT_FALSE(FileExists(checkpoints + "/step10"));
}

TEST_F(RunFilesTest, NamesADirectoryThatCannotBeMade) {
  config_.set_run_directory("/proc/none");
  EXPECT_NE(RunFiles::Open(config_, false, "boot").status().message().find("/proc/none"), absl::string_view::npos);
}

}  // namespace
}  // namespace rubato::coordinator
