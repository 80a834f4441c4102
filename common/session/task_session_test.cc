#include "common/session/task_session.h"

#include <gtest/gtest.h>

#include <utility>

namespace rubato {
namespace {

class HeedStopTest : public testing::Test {
 protected:
  HeedStopTest() { config_.set_run_directory("runs/a"); }
  absl::Status Heed(v1::Stop::Kind kind, const std::string& error, const std::string& checkpoint = "") {
    v1::Stop stop;
    stop.set_kind(kind);
    stop.set_error(error);
    stop.set_checkpoint(checkpoint);
    testing::internal::CaptureStderr();
    const absl::Status status = HeedStop(stop, config_, &log_);
    logged_ = testing::internal::GetCapturedStderr();
    return status;
  }
  bool Logged(const std::string& text) const { return logged_.find(text) != std::string::npos; }

  RealClock clock_;
  Logger log_{"worker 1", &clock_};
  v1::JobConfig config_;
  std::string logged_;
};

TEST_F(HeedStopTest, AJobThatIsDoneNeedsNoWords) {
  EXPECT_TRUE(Heed(v1::Stop::DONE, "").ok());
  EXPECT_EQ(logged_, "");
}

TEST_F(HeedStopTest, AFailureIsTheTasksError) {
  const absl::Status status = Heed(v1::Stop::FAILED, "server 1: disk full");
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "the coordinator ended the job: server 1: disk full");
}

TEST_F(HeedStopTest, AStopThatDoesNotSayWhatItIsCountsAsAFailure) {
  EXPECT_EQ(Heed(v1::Stop::KIND_UNSPECIFIED, "").code(), absl::StatusCode::kAborted);
}

// It was a worker's error.
TEST_F(HeedStopTest, AJobStoppedByItsOperatorIsInformationAboutWhoAndHowToGoOn) {
  EXPECT_TRUE(Heed(v1::Stop::STOPPED, "stopped by the operator at 10.0.0.2: lunch", "checkpoints/stopped").ok());
  EXPECT_TRUE(Logged("stopped by the operator at 10.0.0.2: lunch")) << logged_;
  EXPECT_TRUE(Logged("training.start_from runs/a/checkpoints/stopped")) << logged_;
  EXPECT_EQ(log_.last_problem(), "");
}

TEST_F(HeedStopTest, NamesTheDirectoryWhereTheJobsCheckpointsAre) {
  config_.mutable_checkpoint()->set_directory("/shared/a");
  EXPECT_TRUE(Heed(v1::Stop::STOPPED, "stopped by the operator", "checkpoints/stopped").ok());
  EXPECT_TRUE(Logged("training.start_from /shared/a/stopped")) << logged_;
}

TEST_F(HeedStopTest, AStopBeforeTrainingHasNothingToGoOnFrom) {
  EXPECT_TRUE(Heed(v1::Stop::STOPPED, "stopped by SIGTERM").ok());
  EXPECT_TRUE(Logged("no checkpoint was written")) << logged_;
}

TEST(TaskSessionOptionsTest, ATaskOfTheJobWaitsAsLongForTheCoordinatorAsAStepMayWait) {
  RealClock clock;
  Logger log("worker 1", &clock);
  v1::JobConfig config;
  config.mutable_cluster()->set_start_timeout_seconds(60);
  for (const auto& [wait, timeout] : {std::pair(600, 600), std::pair(10, 60)}) {
    config.mutable_cluster()->set_wait_timeout_seconds(wait);
    const Session::Options options = TaskSessionOptions(config, "host:1", nullptr, v1::TaskId(), &clock, &log);
    EXPECT_EQ(options.give_up_after, absl::Seconds(60));
    EXPECT_EQ(options.give_up_after_registered, absl::Seconds(timeout));
  }
}

}  // namespace
}  // namespace rubato
