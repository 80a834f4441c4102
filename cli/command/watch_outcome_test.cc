#include "cli/command/watch_outcome.h"

#include "gtest/gtest.h"

namespace rubato {
namespace {

v1::JobStatus Ended(v1::Stop::Kind kind, const std::string& error) {
  v1::JobStatus status;
  status.set_run_directory("runs/mnist");
  status.set_phase(kind == v1::Stop::DONE ? v1::JobStatus::DONE : v1::JobStatus::FAILED);
  status.set_error(error);
  status.mutable_end()->set_kind(kind);
  status.mutable_end()->set_error(error);
  return status;
}

// It used to say that the job had failed.
TEST(WatchOutcomeTest, AJobThatWasStoppedHasNotFailedAndCanGoOn) {
  v1::JobStatus status = Ended(v1::Stop::STOPPED, "stopped by the operator at 10.0.0.9: lunch");
  EXPECT_EQ(WatchOutcome(status).message(), "the job was stopped: stopped by the operator at 10.0.0.9: lunch");
  status.mutable_end()->set_checkpoint("checkpoints/stopped");
  EXPECT_EQ(WatchOutcome(status).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(WatchOutcome(status).message(),
            "the job was stopped: stopped by the operator at 10.0.0.9: lunch\nIts weights are in "
            "runs/mnist/checkpoints/stopped; go on with rubato train CONFIG --resume, or begin another job with them: "
            "--set training.start_from=runs/mnist/checkpoints/stopped");
}

TEST(WatchOutcomeTest, ADoneJobIsWell) { EXPECT_TRUE(WatchOutcome(Ended(v1::Stop::DONE, "")).ok()); }

TEST(WatchOutcomeTest, AFailedJobSaysWhy) {
  EXPECT_EQ(WatchOutcome(Ended(v1::Stop::FAILED, "server 1 is lost")).message(), "the job failed: server 1 is lost");
  v1::JobStatus status;
  status.set_phase(v1::JobStatus::FAILED);
  status.set_error("server 1 is lost");
  EXPECT_EQ(WatchOutcome(status).message(), "the job failed: server 1 is lost");
}

TEST(WatchOutcomeTest, ARunRecordTellsTheSame) {
  RunEnding ending;
  ending.error = "stopped by SIGTERM";
  EXPECT_EQ(WatchOutcome(ending).message(), "the job failed: stopped by SIGTERM");
  ending.stopped = true;
  ending.weights = "w";
  EXPECT_EQ(
      WatchOutcome(ending).message(),
      "the job was stopped: stopped by SIGTERM\nIts weights are in w; go on with rubato train CONFIG --resume, or "
      "begin another job with them: --set training.start_from=w");
  ending.ok = true;
  EXPECT_TRUE(WatchOutcome(ending).ok());
}

}  // namespace
}  // namespace rubato
