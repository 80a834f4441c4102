#include "cli/checkpoint/run_checkpoints.h"

#include <filesystem>
#include <sstream>

#include "common/storage/checkpoint.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunCheckpointsTest : public testing::Test {
 protected:
  RunCheckpointsTest()
      : run_(testing::TempDir() + "/run_checkpoints-" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(run_);
  }

  void Write(const std::string& name, uint64_t cut, int64_t step = 0) {
    const std::string directory = JoinPath(run_, "checkpoints/" + name);
    v1::TaskId task;
    task.set_role(v1::TaskId::SERVER);
    auto writer = CheckpointWriter::Create(directory, task);
    ASSERT_TRUE(writer.ok()) << writer.status();
    const float value = 1;
    CheckpointChunk chunk;
    chunk.record.set_tensor("a");
    chunk.record.add_shape(1);
    chunk.record.set_length(1);
    chunk.values = &value;
    ASSERT_TRUE((*writer)->Add(chunk).ok());
    v1::CheckpointManifest manifest;
    manifest.set_job_name("small");
    manifest.set_servers(1);
    if (cut > 0) manifest.mutable_cut()->set_id(cut);
    ASSERT_TRUE((*writer)->Finish(manifest).ok());
    if (step == 0) return;
    v1::CutRecord record;
    record.mutable_cut()->set_id(cut);
    record.mutable_plan()->set_first_step(step);
    record.set_epoch(1.25);
    record.add_servers(0);
    ASSERT_TRUE(WriteFileAtomically(JoinPath(directory, kCutRecordName), record.SerializeAsString()).ok());
  }

  std::string Described(absl::Status* status = nullptr, const std::string& name = "") {
    std::ostringstream out;
    const absl::Status described = DescribeCheckpoints(run_, name, absl::Now() + absl::Hours(1), &out);
    if (status != nullptr) {
      *status = described;
    } else {
      EXPECT_TRUE(described.ok()) << described;
    }
    return out.str();
  }

  const std::string run_;
};

TEST_F(RunCheckpointsTest, DescribesThemInOrderAndNamesWhatIsNotComplete) {
  Write("final", 0);
  Write("step0", 0);
  Write("step1000", 2, 1000);
  Write("step150", 1, 150);
  Write("step1100", 3);
  const std::string text = Described();
  size_t last = 0;
  for (const char* name :
       {"step0 of", "step150 of job small, plan 0, before training, step 150, epoch 1.25, written 1h", "step1000 of",
        "final of", "step1100 is not complete: "}) {
    const size_t at = text.find(std::string("Checkpoint ") + name);
    ASSERT_NE(at, std::string::npos) << name << " in " << text;
    EXPECT_GE(at, last) << name;
    last = at;
  }
  EXPECT_THAT(text, HasSubstr("there are parts of cut 3"));
  EXPECT_THAT(Described(nullptr, "step150"), Not(HasSubstr("final")));
}

TEST_F(RunCheckpointsTest, OneThatIsDamagedIsAnErrorAndTheOthersAreDescribed) {
  Write("step0", 0);
  Write("step150", 1, 150);
  ASSERT_TRUE(WriteFileAtomically(run_ + "/checkpoints/step0/server-0.data", "other").ok());
  absl::Status status;
  const std::string text = Described(&status);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(text, HasSubstr("Checkpoint step0 cannot be used: "));
  EXPECT_THAT(text, HasSubstr("Checkpoint step150 of job small"));
}

TEST_F(RunCheckpointsTest, LooksWhereTheJobWroteThem) {
  ASSERT_TRUE(MakeDirectories(run_).ok());
  EXPECT_EQ(CheckpointsOfRun(run_), run_ + "/checkpoints");
  ASSERT_TRUE(WriteFileAtomically(run_ + "/job.textproto",
                                  "name: 'job' run_directory: 'there' field_of_tomorrow: 3 "
                                  "checkpoint { directory: '/shared/job' }")
                  .ok());
  EXPECT_EQ(CheckpointsOfRun(run_), "/shared/job");
  ASSERT_TRUE(WriteFileAtomically(run_ + "/job.textproto", "name: 'job' run_directory: 'there'").ok());
  EXPECT_EQ(CheckpointsOfRun(run_), run_ + "/checkpoints");
}

TEST_F(RunCheckpointsTest, SaysWhatThereIsInPlaceOfAName) {
  absl::Status status;
  Described(&status);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(run_));
  Write("step0", 0);
  Described(&status, "final");
  EXPECT_EQ(status.message(), "--name: value \"final\"; allowed: step0");
}

}  // namespace
}  // namespace rubato
