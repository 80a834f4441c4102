// Jobs of clients: a worker assigns the initial weights, and with data of their own the job ends when the last has
// left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/rules/coordinator_core.h"
#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

using ::testing::HasSubstr;

class CoreClientTest : public CoreHarness {
 protected:
  static v1::JobConfig ClientJob() {
    v1::JobConfig config = SmallJob();
    config.clear_model();
    config.mutable_model()->mutable_manifest()->set_groups(1);
    v1::ManifestTensor* tensor = config.mutable_model()->mutable_manifest()->add_tensors();
    tensor->set_name("w");
    tensor->add_shape(4096);  // Chunks for both servers.
    config.clear_data();
    config.mutable_data()->mutable_client();
    config.mutable_data()->set_dispatch(v1::DataConfig::OWN);
    config.mutable_training()->clear_epochs();
    config.mutable_training()->clear_batch_size();
    return config;
  }
  // All are there, and the servers hold plan 1 and write nothing by themselves.
  void PlaceQuietly(const v1::JobConfig& config) {
    Create(config);
    Register(ServerTask(0));
    Register(ServerTask(1));
    mute_ = {0, 1};
    Register(WorkerTask(1));
    Register(WorkerTask(0));
  }
  void HoldFirstPlan() {
    for (uint32_t i = 0; i < 2; ++i) {
      v1::TaskMessage message;
      *message.mutable_task() = ServerTask(i);
      message.mutable_plan_ack()->set_generation(1);
      Deliver(message);
    }
  }
  void Assigned(uint32_t server, uint64_t incarnation = 1) {
    v1::TaskMessage message;
    *message.mutable_task() = ServerTask(server, incarnation);
    message.mutable_checkpoint_done()->set_name("step0");
    Deliver(message);
  }
};

TEST_F(CoreClientTest, AClientThatIsStillToRegisterIsToldWhyTheJobHasEnded) {
  Create(ClientJob());
  Do(core_->Abort("models differ", now_));
  Pass(absl::Seconds(1));
  EXPECT_FALSE(finished_.has_value());
  Register(WorkerTask(0));
  EXPECT_EQ(Last(WorkerTask(0)).stop().error(), "models differ");
  Pass(absl::Seconds(2));
  ASSERT_TRUE(finished_.has_value());
  EXPECT_EQ(finished_->message(), "models differ");
}

TEST_F(CoreClientTest, TheLowestWorkerAssignsAndNobodyLearnsThePlanBefore) {
  PlaceQuietly(ClientJob());
  EXPECT_EQ(CountSent(WorkerTask(0), v1::Directive::kJob), 0);  // Servers do not hold the plan yet.
  HoldFirstPlan();
  EXPECT_EQ(core_->phase(), v1::JobStatus::STARTING);
  for (uint32_t i = 0; i < 2; ++i) {
    const v1::JobDescription job = Last(WorkerTask(i)).job();
    EXPECT_TRUE(SameTask(job.initial_weights_from(), WorkerTask(0)));
    EXPECT_FALSE(job.has_plan());
    const v1::JobDescription server = Last(ServerTask(i)).job();
    EXPECT_TRUE(SameTask(server.initial_weights_from(), WorkerTask(0)));
    EXPECT_TRUE(server.has_plan());
    EXPECT_EQ(CountSent(ServerTask(i), v1::Directive::kCheckpoint), 1);
  }
  EXPECT_EQ(core_->WaitingFor(), "worker 0 to assign the initial weights");
  Assigned(0);
  EXPECT_EQ(core_->phase(), v1::JobStatus::STARTING);
  Assigned(1);
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_FALSE(Last(WorkerTask(1)).job().has_initial_weights_from());
  EXPECT_TRUE(Last(WorkerTask(1)).job().has_plan());
}

TEST_F(CoreClientTest, AnotherOneAssignsIfTheFirstIsLost) {
  PlaceQuietly(ClientJob());
  HoldFirstPlan();
  Leave(WorkerTask(0), "killed");
  EXPECT_TRUE(SameTask(Last(WorkerTask(1)).job().initial_weights_from(), WorkerTask(1)));
  bool told = false;
  for (const v1::Directive& directive : sent_[TaskName(ServerTask(1))]) {
    told = told || SameTask(directive.job().initial_weights_from(), WorkerTask(1));
  }
  EXPECT_TRUE(told);
  // One that comes is told as well.
  Register(WorkerTask(2));
  EXPECT_TRUE(SameTask(Last(WorkerTask(2)).job().initial_weights_from(), WorkerTask(1)));
}

TEST_F(CoreClientTest, OneThatComesLaterDoesNotTakeItsPlace) {
  Create(ClientJob());
  Register(ServerTask(0));
  Register(ServerTask(1));
  mute_ = {0, 1};
  Register(WorkerTask(3));
  Register(WorkerTask(2));
  HoldFirstPlan();
  Register(WorkerTask(0));
  EXPECT_TRUE(SameTask(Last(WorkerTask(0)).job().initial_weights_from(), WorkerTask(2)));
  EXPECT_TRUE(SameTask(Last(WorkerTask(3)).job().initial_weights_from(), WorkerTask(2)));
}

TEST_F(CoreClientTest, ACheckpointIsNotCompleteByTheWordOfAServerWithoutChunks) {
  v1::JobConfig config = ClientJob();
  config.mutable_cluster()->set_servers(3);
  config.mutable_model()->mutable_manifest()->mutable_tensors(0)->set_shape(0, 2048);  // Two chunks.
  Create(config);
  for (uint32_t i = 0; i < 3; ++i) Register(ServerTask(i));
  mute_ = {0, 1, 2};
  Register(WorkerTask(0));
  Register(WorkerTask(1));
  HoldFirstPlan();
  Assigned(2);
  Assigned(1);
  EXPECT_EQ(core_->phase(), v1::JobStatus::STARTING);
  Assigned(0);
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
}

TEST_F(CoreClientTest, WeightsThatNobodyAssignsEndTheJob) {
  v1::JobConfig config = ClientJob();
  config.mutable_cluster()->set_wait_timeout_seconds(20);
  PlaceQuietly(config);
  HoldFirstPlan();
  Pass(absl::Seconds(21));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_THAT(Last(WorkerTask(0)).stop().error(), HasSubstr("were not assigned within"));
  EXPECT_THAT(Last(WorkerTask(0)).stop().error(), HasSubstr("by worker 0"));
}

TEST_F(CoreClientTest, AJobThatStartsFromACheckpointAssignsNothing) {
  v1::JobConfig config = ClientJob();
  config.mutable_training()->set_start_from("runs/a/checkpoints/final");
  Create(config);
  StartJob();
  EXPECT_FALSE(Last(WorkerTask(0)).job().has_initial_weights_from());
}

TEST_F(CoreClientTest, WithDataOfTheirOwnTheJobEndsWhenTheLastHasLeft) {
  Create(ClientJob());
  StartJob();
  Beat(WorkerTask(0), 5, 1, 40);
  Pass(absl::Seconds(2));
  const v1::JobStatus status = core_->Status(now_);
  EXPECT_EQ(status.epoch(), 0);
  EXPECT_EQ(status.epochs_total(), 0);
  EXPECT_EQ(status.examples_done(), 40);
  EXPECT_EQ(status.seconds_left(), -1);
  Leave(WorkerTask(0));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  Leave(WorkerTask(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FINISHING);
  Pass(absl::Milliseconds(200));
  EXPECT_EQ(core_->phase(), v1::JobStatus::DONE);
  EXPECT_EQ(Lines(Line::kStart)[0].start().train_examples(), 0u);
}

TEST_F(CoreClientTest, AWorkerThatIsLostLastLeavesItsDataUndone) {
  Create(ClientJob());
  StartJob();
  Leave(WorkerTask(0));
  Leave(WorkerTask(1), "out of memory");
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  Pass(absl::Seconds(6));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_THAT(core_->Status(now_).error(), HasSubstr("the last one did not end by itself"));
}

TEST_F(CoreClientTest, OneThatIsLostBeforeTheOthersHaveLeftDoesNotFailTheJob) {
  Create(ClientJob());
  StartJob();
  Leave(WorkerTask(1), "out of memory");
  Leave(WorkerTask(0));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FINISHING);
}

TEST_F(CoreClientTest, AJobWithoutACutGoesBackToTheAssignedWeights) {
  Create(ClientJob());
  StartJob();
  EnterPlan(1);
  Pass(absl::Seconds(6), {"server 1"});
  EXPECT_EQ(restarts_, 1);
  ComeBack();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  const v1::JobDescription job = Last(WorkerTask(0, 2)).job();
  EXPECT_EQ(job.restore().name(), "step0");
  EXPECT_FALSE(job.has_initial_weights_from());
  EXPECT_EQ(job.plan().first_step(), 0);
  EXPECT_EQ(job.plan().mode(), v1::SYNC);
}

TEST_F(CoreClientTest, AJobThatGoesBackBeforeItBeganIsAssignedAnew) {
  PlaceQuietly(ClientJob());
  Register(ServerTask(1, 2));  // Started again.
  EXPECT_EQ(restarts_, 1);
  mute_ = {};
  incarnation_ = 2;
  ComeBack();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_FALSE(Last(WorkerTask(0, 3)).job().has_restore());
  EXPECT_EQ(CountSent(ServerTask(0, 3), v1::Directive::kCheckpoint), 1);
}

TEST_F(CoreClientTest, ACoordinatorThatIsStartedAgainNamesTheAssigner) {
  PlaceQuietly(ClientJob());
  ASSERT_TRUE(Restart().ok());
  for (uint32_t i = 0; i < 2; ++i) {
    Register(ServerTask(i));
    Register(WorkerTask(i));
  }
  HoldFirstPlan();
  EXPECT_TRUE(SameTask(Last(WorkerTask(1)).job().initial_weights_from(), WorkerTask(0)));
  Assigned(0);
  Assigned(1);
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
}

TEST_F(CoreClientTest, ARestartDuringTrainingKnowsWhoLeftByItself) {
  Create(ClientJob());
  StartJob();
  Leave(WorkerTask(0));
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  Leave(WorkerTask(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FINISHING);
}

TEST_F(CoreClientTest, LeasedDataEndWhenTheyAreUsedUp) {
  v1::JobConfig config = ClientJob();
  config.mutable_data()->set_dispatch(v1::DataConfig::DYNAMIC);
  config.mutable_data()->mutable_client()->set_train_examples(100);
  config.mutable_data()->set_shard_examples(10);
  config.mutable_training()->set_epochs(2);
  Create(config);
  StartJob();
  EXPECT_EQ(core_->Status(now_).epochs_total(), 2);
  FinishAllShards();
  Leave(WorkerTask(0));
  Leave(WorkerTask(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FINISHING);
}

TEST_F(CoreClientTest, MaxStepsWithoutABatchSizeHasNoEpochs) {
  v1::JobConfig config = ClientJob();
  config.mutable_data()->set_dispatch(v1::DataConfig::DYNAMIC);
  config.mutable_data()->mutable_client()->set_train_examples(100);
  config.mutable_data()->set_shard_examples(10);
  config.mutable_training()->set_max_steps(7);
  Create(config);
  StartJob();
  Beat(WorkerTask(0), 5, 1, 40);
  Pass(absl::Seconds(2));
  EXPECT_EQ(core_->Status(now_).epochs_total(), 0);
  EXPECT_EQ(core_->Status(now_).seconds_left(), -1);
}

}  // namespace
}  // namespace rubato::coordinator
