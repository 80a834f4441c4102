// Workers that have done their part, and stay until the job has ended or goes back.
#include <gtest/gtest.h>

#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

class CoreDoneWorkerTest : public CoreHarness {
 protected:
  // Both workers have trained up to step 10, and nothing is left to train.
  void TrainAll() {
    Create(SmallJob());
    StartJob();
    EnterPlan(10);
    FinishAllShards();
  }
  void RegisterDone(const v1::TaskId& worker) {
    v1::TaskMessage message;
    *message.mutable_task() = worker;
    *message.mutable_register_() = RegistrationOf(worker);
    v1::WorkerProgress* done = message.mutable_register_()->mutable_done();
    done->set_step(10);
    done->set_steps_total(11);
    done->set_examples_total(100);
    Deliver(message);
  }
  v1::TaskStatus StatusOf(const v1::TaskId& task) {
    const v1::JobStatus job = core_->Status(now_);
    for (const v1::TaskStatus& status : job.tasks()) {
      if (SameTask(status.task(), task)) return status;
    }
    return {};
  }
};

TEST_F(CoreDoneWorkerTest, IsToldWhatItWaitsFor) {
  TrainAll();
  RegisterDone(WorkerTask(0));
  EXPECT_EQ(Last(WorkerTask(0)).registered().waiting_for(), "the end of the job");
  EXPECT_EQ(Last(WorkerTask(0)).registered().lease_seconds(), 5);
  // It is no member: nobody misses it.
  EXPECT_EQ(StatusOf(WorkerTask(0)).state(), v1::TaskStatus::LEFT);
  Pass(absl::Seconds(20));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(core_->Status(now_).counts().evicted_total(), 0);
}

TEST_F(CoreDoneWorkerTest, TheJobEndsWhenItHasHeardOfTheEnd) {
  TrainAll();
  RegisterDone(WorkerTask(0));
  RegisterDone(WorkerTask(1));
  Do(core_->OnTick(now_));
  ASSERT_EQ(core_->phase(), v1::JobStatus::DONE);
  for (uint32_t i = 0; i < 2; ++i) EXPECT_EQ(Last(WorkerTask(i)).stop().kind(), v1::Stop::DONE);
  for (uint32_t i = 0; i < 2; ++i) Leave(ServerTask(i));
  Do(core_->OnDisconnect(WorkerTask(0), now_));
  EXPECT_FALSE(finished_.has_value());
  Do(core_->OnDisconnect(WorkerTask(1), now_));
  ASSERT_TRUE(finished_.has_value());
  EXPECT_TRUE(finished_->ok());
}

TEST_F(CoreDoneWorkerTest, OneThatDoesNotGoIsNotWaitedForLong) {
  TrainAll();
  RegisterDone(WorkerTask(0));
  RegisterDone(WorkerTask(1));
  Do(core_->OnTick(now_));
  for (uint32_t i = 0; i < 2; ++i) Leave(ServerTask(i));
  Pass(absl::Seconds(1));
  EXPECT_FALSE(finished_.has_value());
  Pass(absl::Seconds(2));
  EXPECT_TRUE(finished_.has_value());
}

TEST_F(CoreDoneWorkerTest, TakesPartAgainIfAServerIsLostBeforeTheEnd) {
  TrainAll();
  mute_ = {0, 1};
  RegisterDone(WorkerTask(0));
  RegisterDone(WorkerTask(1));
  Do(core_->OnTick(now_));
  ASSERT_EQ(core_->phase(), v1::JobStatus::FINISHING);
  Register(ServerTask(0, 2));
  for (uint32_t i = 0; i < 2; ++i) EXPECT_TRUE(Last(WorkerTask(i)).has_restart());
  mute_ = {};
  incarnation_ = 2;
  ComeBack();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
}

TEST_F(CoreDoneWorkerTest, OneThatWasOutOfReachWhenTheJobWentBackIsToldWhenItComes) {
  TrainAll();
  mute_ = {0, 1};
  RegisterDone(WorkerTask(0));
  RegisterDone(WorkerTask(1));
  Do(core_->OnTick(now_));
  Do(core_->OnDisconnect(WorkerTask(1), now_));
  sent_.clear();
  Register(ServerTask(0, 2));
  EXPECT_TRUE(sent_[TaskName(WorkerTask(1))].empty());
  RegisterDone(WorkerTask(1));
  EXPECT_TRUE(Last(WorkerTask(1)).has_restart());
}

// A coordinator that was started again after a power cut may have lost what it had not synced.
TEST_F(CoreDoneWorkerTest, SaysSoAgainToACoordinatorThatDoesNotKnow) {
  TrainAll();
  const std::vector<v1::JournalRecord> before = journal_;
  RegisterDone(WorkerTask(0));
  journal_ = before;
  ASSERT_TRUE(Restart().ok());
  for (uint32_t i = 0; i < 2; ++i) Register(ServerTask(i));
  EXPECT_EQ(StatusOf(WorkerTask(0)).state(), v1::TaskStatus::ALIVE);
  RegisterDone(WorkerTask(0));
  EXPECT_EQ(StatusOf(WorkerTask(0)).state(), v1::TaskStatus::LEFT);
  EXPECT_EQ(StatusOf(WorkerTask(0)).progress().examples_total(), 100);
  EXPECT_EQ(Last(WorkerTask(0)).registered().waiting_for(), "the end of the job");
}

TEST_F(CoreDoneWorkerTest, OneThatComesWhenAllIsDoneWaitsToo) {
  TrainAll();
  RegisterDone(WorkerTask(0));
  Register(WorkerTask(0, 7));
  EXPECT_EQ(Last(WorkerTask(0, 7)).registered().waiting_for(), "the end of the job");
  RegisterDone(WorkerTask(1));
  Do(core_->OnTick(now_));
  ASSERT_EQ(core_->phase(), v1::JobStatus::DONE);
  EXPECT_TRUE(Last(WorkerTask(0, 7)).has_stop());
}

}  // namespace
}  // namespace rubato::coordinator
