#include <gtest/gtest.h>

#include <string>

#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

class CoreStopTest : public CoreHarness {
 protected:
  // Training; the cut's plan is held, and nobody has written a part yet.
  void StopTraining(const std::string& reason) {
    Create(SmallJob());
    StartJob();
    EnterPlan(3);
    Do(core_->RequestStop(reason, now_));
    ASSERT_EQ(core_->Status(now_).plan().cut().name(), "stopped");
    ASSERT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  }
  std::string Error() { return core_->Status(now_).error(); }
};

TEST_F(CoreStopTest, ACheckpointIsWrittenFirst) {
  StopTraining("enough");
  const v1::Plan plan = core_->Status(now_).plan();
  ReportCut(ServerTask(0), Written(1));
  ReportCut(WorkerTask(0), Written(1, true), 11, plan.generation());
  ReportCut(WorkerTask(1), Written(1, true), 11, plan.generation());
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(core_->WaitingFor(), "server 1 to write checkpoint stopped");
  ReportCut(ServerTask(1), Written(1));
  Do(core_->OnTick(now_));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_EQ(Error(), "enough");
  ASSERT_EQ(cuts_.size(), 1u);
  EXPECT_EQ(cuts_[0].cut().name(), "stopped");
}

TEST_F(CoreStopTest, WhoAsksAgainDoesNotWait) {
  StopTraining("first");
  Do(core_->RequestStop("second", now_));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_EQ(Error(), "first; then second");
}

// Workers are told that it is no failure, and from where to go on.
TEST_F(CoreStopTest, AStoppedJobIsNotAFailedOne) {
  StopTraining("stopped by the operator at 10.0.0.2: lunch");
  WriteCut();
  Do(core_->OnTick(now_));
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

TEST_F(CoreStopTest, DoesNotWaitForEver) {
  StopTraining("enough");
  Pass(absl::Seconds(599));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  Pass(absl::Seconds(2));
  EXPECT_EQ(Error(), "enough; gave up waiting for server 0, server 1, worker 0, worker 1 to write checkpoint stopped");
}

// A full disk is waited for, and named.
TEST_F(CoreStopTest, SaysWhyThereIsNoCheckpoint) {
  StopTraining("enough");
  v1::CutProgress full;
  full.set_id(1);
  full.set_problem("no space left on device");
  ReportCut(ServerTask(1), full);
  EXPECT_EQ(core_->WaitingFor(),
            "server 0, server 1: no space left on device, worker 0, worker 1 to write checkpoint stopped");
}

// Whoever asked does not ask again because the coordinator was lost meanwhile.
TEST_F(CoreStopTest, ARestartedCoordinatorRemembersThatTheJobIsToStop) {
  StopTraining("enough");
  ASSERT_TRUE(Restart().ok());
  EnterPlan(11);
  ASSERT_EQ(core_->Status(now_).plan().cut().name(), "stopped");
  WriteCut();
  Do(core_->OnTick(now_));
  EXPECT_EQ(Error(), "enough");
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
