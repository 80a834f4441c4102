// CoordinatorCore: a stop on request.
#include <string>

#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

class CoreStopTest : public CoreHarness {
 protected:
  // Training, with servers that have not written the checkpoint yet.
  void StopTraining(const std::string& reason) {
    Create(SmallJob());
    mute_ = {};
    StartJob();
    mute_ = {0, 1};
    Do(core_->RequestStop(reason, now_));
    ASSERT_EQ(Last(ServerTask(0)).checkpoint().name(), "stopped");
    ASSERT_EQ(Last(ServerTask(1)).checkpoint().name(), "stopped");
    ASSERT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  }
  void CheckpointDone(const v1::TaskId& server, const std::string& error = "") {
    v1::TaskMessage message;
    *message.mutable_task() = server;
    message.mutable_checkpoint_done()->set_name("stopped");
    message.mutable_checkpoint_done()->set_error(error);
    Deliver(message);
  }
  std::string Error() { return core_->Status(now_).error(); }
};

TEST_F(CoreStopTest, TheServersWriteACheckpointFirst) {
  StopTraining("enough");
  CheckpointDone(ServerTask(0));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(core_->WaitingFor(), "server 1 to write checkpoint stopped");
  CheckpointDone(ServerTask(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_EQ(Error(), "enough");
}

TEST_F(CoreStopTest, WhoAsksAgainDoesNotWait) {
  StopTraining("first");
  Do(core_->RequestStop("second", now_));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_EQ(Error(), "second");
}

// Workers are told that it is no failure, and from where to go on.
TEST_F(CoreStopTest, AStoppedJobIsNotAFailedOne) {
  StopTraining("stopped by the operator at 10.0.0.2: lunch");
  CheckpointDone(ServerTask(0));
  CheckpointDone(ServerTask(1));
  const v1::Stop stop = Last(WorkerTask(0)).stop();
  EXPECT_EQ(stop.kind(), v1::Stop::STOPPED);
  EXPECT_EQ(stop.error(), "stopped by the operator at 10.0.0.2: lunch");
  EXPECT_EQ(stop.checkpoint(), "checkpoints/stopped");
  EXPECT_EQ(core_->Status(now_).end().kind(), v1::Stop::STOPPED);
  ASSERT_EQ(Lines(Line::kEnd).size(), 1u);
  EXPECT_EQ(Lines(Line::kEnd)[0].end().error(), "stopped by the operator at 10.0.0.2: lunch");
  EXPECT_TRUE(Contains(log_, "the job has ended: stopped by the operator at 10.0.0.2: lunch"));
}

TEST_F(CoreStopTest, AStopAtOnceHasNoCheckpointToGoOnFrom) {
  StopTraining("first");
  Do(core_->RequestStop("second", now_));
  EXPECT_EQ(Last(WorkerTask(0)).stop().kind(), v1::Stop::STOPPED);
  EXPECT_EQ(Last(WorkerTask(0)).stop().checkpoint(), "");
}

TEST_F(CoreStopTest, AStopWithoutTheCheckpointIsAFailure) {
  StopTraining("enough");
  CheckpointDone(ServerTask(1), "no space left");
  EXPECT_EQ(Last(WorkerTask(0)).stop().kind(), v1::Stop::FAILED);
}

TEST_F(CoreStopTest, DoesNotWaitForEver) {
  StopTraining("enough");
  Pass(absl::Seconds(599));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  Pass(absl::Seconds(2));
  EXPECT_EQ(Error(), "enough; gave up waiting for server 0, server 1 to write checkpoint stopped");
}

TEST_F(CoreStopTest, SaysWhyThereIsNoCheckpoint) {
  StopTraining("enough");
  CheckpointDone(ServerTask(1), "no space left");
  EXPECT_EQ(Error(), "enough; server 1: checkpoint stopped failed: no space left");
}

TEST_F(CoreStopTest, BeforeTrainingThereIsNothingToKeep) {
  Create(SmallJob());
  Register(ServerTask(0));
  Do(core_->RequestStop("enough", now_));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_EQ(CountSent(ServerTask(0), v1::Directive::kCheckpoint), 0);
}

}  // namespace
}  // namespace rubato::coordinator
