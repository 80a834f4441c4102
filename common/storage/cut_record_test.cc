#include "common/storage/cut_record.h"

#include <gtest/gtest.h>

#include "common/storage/file.h"

namespace rubato {
namespace {

v1::CutRecord Record() {
  v1::CutRecord record;
  record.set_format_version(kCutFormatVersion);
  record.mutable_cut()->set_id(3);
  record.mutable_cut()->set_name("step150");
  record.add_servers(0);
  return record;
}

absl::StatusOr<v1::CutRecord> Read(const std::string& bytes) {
  const std::string directory = JoinPath(testing::TempDir(), "cut_record_test");
  EXPECT_TRUE(MakeDirectories(directory).ok());
  EXPECT_TRUE(WriteFileAtomically(JoinPath(directory, kCutRecordName), bytes).ok());
  return ReadCutRecord(directory);
}

TEST(CutRecordTest, ReadsWhatWasWritten) {
  const auto record = Read(Record().SerializeAsString());
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->SerializeAsString(), Record().SerializeAsString());
  EXPECT_EQ(ReadCutRecord("/no/such").status().code(), absl::StatusCode::kNotFound);
}

TEST(CutRecordTest, RefusesWhatIsNone) {
  EXPECT_EQ(Read("not a record").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Read("").status().code(), absl::StatusCode::kDataLoss);
  v1::CutRecord record = Record();
  record.clear_servers();
  EXPECT_NE(Read(record.SerializeAsString()).status().message().find("is of cut 3 (step150) with parts of 0 servers"),
            absl::string_view::npos);
  record = Record();
  record.set_format_version(2);
  EXPECT_EQ(Read(record.SerializeAsString()).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(CutRecordTest, ACheckpointHasTheNameOfACutOrIsTheLast) {
  for (const char* name : {"step0", "step120", "final", "stopped"}) EXPECT_TRUE(IsCheckpointName(name)) << name;
  for (const char* name : {"", ".", "..", "/", "step", "stepx", "step1/../..", "../step1", "step1 ", "cut", "step-1"}) {
    EXPECT_FALSE(IsCheckpointName(name)) << name;
  }
}

TEST(CutRecordTest, TellsTheStepOfAName) {
  EXPECT_EQ(StepOfCheckpoint("step150"), 150);
  EXPECT_EQ(StepOfCheckpoint("step0"), 0);
  EXPECT_EQ(StepOfCheckpoint("step150.7"), 150);
  for (const char* name :
       {"", "step", "step-1", "step01", "step+1", "step 1", "step1 ", "final", "xstep1", "step99999999999999999999",
        "step1/..", "step1.", "step1..", "step.7", "step1.x", "step1.7.8", "step1.7/.."}) {
    EXPECT_EQ(StepOfCheckpoint(name), -1) << name;
  }
}

TEST(CutRecordTest, ChecksTheCutOfAPart) {
  const v1::Cut cut = Record().cut();
  EXPECT_TRUE(CheckCut(cut, 0, "x").ok());
  EXPECT_TRUE(CheckCut(cut, 3, "x").ok());
  EXPECT_EQ(CheckCut(cut, 4, "x").message(), "x: is of cut 3 (step150), cut 4 is wanted");
  EXPECT_EQ(CheckCut({}, 4, "x").message(), "x: is of no cut, cut 4 is wanted");
}

}  // namespace
}  // namespace rubato
