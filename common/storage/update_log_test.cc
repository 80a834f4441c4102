#include "common/storage/update_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/storage/file.h"

namespace rubato {
namespace {

class UpdateLogTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    path_ = JoinPath(testing::TempDir(), "update_log_test_" + name);
    ASSERT_TRUE(RemoveFile(path_).ok());
  }

  static v1::UpdateLogRecord Update(int64_t step) {
    v1::UpdateLogRecord record;
    record.mutable_update()->set_step(step);
    record.mutable_update()->set_incarnation(0x1234567890abcdefu);
    record.mutable_update()->set_applied_version(step + 1);
    return record;
  }

  // Header, one plan and `updates` updates.
  void WriteLog(int updates) {
    v1::LogHeader header;
    header.set_job_name("job");
    header.set_server(1);
    header.set_partition(2);
    auto log = UpdateLogWriter::Create(path_, header);
    ASSERT_TRUE(log.ok()) << log.status();
    v1::UpdateLogRecord plan;
    plan.mutable_plan()->set_generation(1);
    ASSERT_TRUE((*log)->Append(plan).ok());
    for (int step = 0; step < updates; ++step) ASSERT_TRUE((*log)->Append(Update(step)).ok());
    ASSERT_TRUE((*log)->Close().ok());
  }

  struct Outcome {
    int records = 0;
    bool torn = false;
    absl::Status status;
  };

  Outcome ReadAll() const {
    auto log = UpdateLogReader::Open(path_);
    if (!log.ok()) return {0, false, log.status()};
    Outcome outcome;
    v1::UpdateLogRecord record;
    for (;;) {
      absl::StatusOr<bool> more = (*log)->Next(&record);
      if (!more.ok()) outcome.status = more.status();
      if (!more.ok() || !*more) break;
      ++outcome.records;
    }
    outcome.torn = (*log)->torn();
    return outcome;
  }

  std::string path_;
};

TEST_F(UpdateLogTest, GivesBackWhatWasWritten) {
  WriteLog(3);
  auto log = UpdateLogReader::Open(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->header().job_name(), "job");
  EXPECT_EQ((*log)->header().partition(), 2u);
  v1::UpdateLogRecord record;
  EXPECT_TRUE(*(*log)->Next(&record));
  EXPECT_EQ(record.plan().generation(), 1u);
  for (int step = 0; step < 3; ++step) {
    EXPECT_TRUE(*(*log)->Next(&record));
    EXPECT_EQ(record.SerializeAsString(), Update(step).SerializeAsString());
  }
  EXPECT_FALSE(*(*log)->Next(&record));
  EXPECT_FALSE((*log)->torn());
}

TEST_F(UpdateLogTest, HoldsMoreThanItsBuffers) {
  WriteLog(50000);
  EXPECT_GT(*FileBytes(path_), 1u << 20);
  const Outcome outcome = ReadAll();
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.records, 50001);
}

TEST_F(UpdateLogTest, TornLastRecordIsTheEnd) {
  WriteLog(2);
  const std::string whole = *ReadFile(path_);
  const size_t last = 8 + Update(1).ByteSizeLong();
  for (size_t cut = 1; cut < last; ++cut) {
    ASSERT_TRUE(WriteFileAtomically(path_, whole.substr(0, whole.size() - cut)).ok());
    const Outcome outcome = ReadAll();
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.records, 2) << cut;
    EXPECT_TRUE(outcome.torn) << cut;
  }
}

TEST_F(UpdateLogTest, CorruptRecordIsDataLossWithItsOffset) {
  WriteLog(3);
  std::string bytes = *ReadFile(path_);
  const size_t at = bytes.size() - 2 * (8 + Update(1).ByteSizeLong());
  bytes[at + 9] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok());
  const Outcome outcome = ReadAll();
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(outcome.status.message().find("byte " + std::to_string(at)), absl::string_view::npos) << outcome.status;
  // The plan and step 0.
  EXPECT_EQ(outcome.records, 2);
}

TEST_F(UpdateLogTest, ImpossibleLengthIsDataLoss) {
  WriteLog(0);
  const std::string whole = *ReadFile(path_);
  for (const std::string& tail : {std::string(8, '\0'), std::string(8, '\xff')}) {
    ASSERT_TRUE(WriteFileAtomically(path_, whole + tail).ok());
    EXPECT_EQ(ReadAll().status.code(), absl::StatusCode::kDataLoss);
  }
}

TEST_F(UpdateLogTest, FileWithoutHeaderIsRefused) {
  ASSERT_TRUE(WriteFileAtomically(path_, "").ok());
  EXPECT_EQ(ReadAll().status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(UpdateLogTest, MissingFileIsNotFound) { EXPECT_EQ(ReadAll().status.code(), absl::StatusCode::kNotFound); }

TEST_F(UpdateLogTest, DoesNotReplaceAnEarlierLog) {
  WriteLog(1);
  EXPECT_EQ(UpdateLogWriter::Create(path_, v1::LogHeader()).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadAll().records, 2);
}

TEST_F(UpdateLogTest, FlushedRecordsAreThereWhileTheWriterLives) {
  auto log = UpdateLogWriter::Create(path_, v1::LogHeader());
  // An empty header is still a record, because its field is set.
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append(Update(1)).ok());
  EXPECT_EQ(ReadAll().records, 0);
  ASSERT_TRUE((*log)->Flush().ok());
  EXPECT_EQ(ReadAll().records, 1);
}

TEST_F(UpdateLogTest, RefusesAnEmptyRecord) {
  auto log = UpdateLogWriter::Create(path_, v1::LogHeader());
  EXPECT_EQ((*log)->Append(v1::UpdateLogRecord()).code(), absl::StatusCode::kInvalidArgument);
}

TEST(UpdateLogNameTest, NamesServerPartitionAndTerm) {
  EXPECT_EQ(UpdateLogName(3, 12), "updates-server3-partition12.log");
  EXPECT_EQ(UpdateLogName(3, 12, 0), "updates-server3-partition12.log");
  EXPECT_EQ(UpdateLogName(3, 12, 1), "updates-server3-partition12.log");
  EXPECT_EQ(UpdateLogName(3, 12, 4), "updates-server3-partition12-term4.log");
}

}  // namespace
}  // namespace rubato
