#include "coordinator/rules/coordinator_core.h"

#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

class CoreTest : public CoreHarness {
 protected:
  CoreTest() { Create(SmallJob()); }
};

TEST_F(CoreTest, StartsWhenAllTasksAreThere) {
  Register(ServerTask(0));
  EXPECT_EQ(Last(ServerTask(0)).registered().waiting_for(), "server 1, worker 0, worker 1");
  EXPECT_EQ(Last(ServerTask(0)).registered().lease_seconds(), 5);
  Register(WorkerTask(0));
  Register(ServerTask(1));
  Pass(absl::Milliseconds(100));
  EXPECT_EQ(Last(ServerTask(0)).registered().waiting_for(), "worker 1");
  EXPECT_EQ(core_->phase(), v1::JobStatus::STARTING);
  Register(WorkerTask(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  v1::JobDescription job = Last(WorkerTask(0)).job();
  EXPECT_EQ(job.fingerprint(), 0x1234u);
  ASSERT_EQ(job.servers_size(), 2);
  EXPECT_EQ(job.servers(1).address(), "10.0.0.9:900");
  EXPECT_EQ(job.chunks_size(), 2);
  EXPECT_EQ(job.plan().generation(), 1u);
  EXPECT_EQ(job.plan().members_size(), 2);
  EXPECT_TRUE(metrics_[0].has_start());
}

TEST_F(CoreTest, WorkersLearnThePlanOnlyWhenServersHoldItAndHaveWrittenTheFirstCheckpoint) {
  mute_ = {0, 1};
  Register(ServerTask(0));
  Register(ServerTask(1));
  Register(WorkerTask(0));
  Register(WorkerTask(1));
  EXPECT_TRUE(Last(ServerTask(0)).has_commit());
  mute_ = {1};
  Pass(absl::Milliseconds(300));
  EXPECT_EQ(CountSent(ServerTask(0), v1::Directive::kCheckpoint), 0);
  mute_ = {};
  Pass(absl::Milliseconds(300));
  EXPECT_EQ(CountSent(ServerTask(0), v1::Directive::kCheckpoint), 1);
  EXPECT_EQ(CountSent(WorkerTask(0), v1::Directive::kJob), 1);
}

TEST_F(CoreTest, RefusesATaskWithAnotherConfig) {
  Register(WorkerTask(0), 0xbad);
  EXPECT_TRUE(Contains(Last(WorkerTask(0)).stop().error(), "0000000000000bad"));
  EXPECT_EQ(core_->Status(now_).tasks_size(), 0);
}

TEST_F(CoreTest, FailsNamingWhoIsMissingWhenTheJobCannotStart) {
  Register(ServerTask(0));
  Register(WorkerTask(1));
  Pass(absl::Seconds(61));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_TRUE(Contains(core_->Status(now_).error(), "missing server 1, worker 0")) << core_->Status(now_).error();
  EXPECT_TRUE(Last(ServerTask(0)).has_stop());
}

TEST_F(CoreTest, ARunEndsWithTheFinalCheckpointAndStop) {
  StartJob();
  FinishAllShards();
  EXPECT_EQ(core_->Status(now_).examples_done(), 200);
  Leave(WorkerTask(0));
  EXPECT_EQ(AskShard(WorkerTask(1), 1).result(), v1::ShardGrant::DONE);
  Leave(WorkerTask(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FINISHING);
  Pass(absl::Milliseconds(200));
  EXPECT_EQ(core_->phase(), v1::JobStatus::DONE);
  EXPECT_TRUE(Last(ServerTask(0)).has_stop());
  EXPECT_EQ(Last(ServerTask(0)).stop().error(), "");
  EXPECT_FALSE(finished_.has_value());
  Leave(ServerTask(0));
  Leave(ServerTask(1));
  ASSERT_TRUE(finished_.has_value());
  EXPECT_TRUE(finished_->ok());
  ASSERT_EQ(Lines(Line::kEnd).size(), 1u);
  EXPECT_TRUE(Lines(Line::kEnd)[0].end().ok());
  ASSERT_EQ(Lines(Line::kMember).size(), 2u);
  EXPECT_EQ(Lines(Line::kMember)[0].member().event(), v1::MemberLine::LEFT);
}

TEST_F(CoreTest, IsOverTwoSecondsAfterStopEvenIfATaskStays) {
  StartJob();
  EnterPlan(1);
  Do(core_->RequestStop("stopped by the operator", now_));
  WriteCut();
  Pass(absl::Seconds(1.5));
  EXPECT_FALSE(finished_.has_value());
  Pass(absl::Seconds(1));
  ASSERT_TRUE(finished_.has_value());
  EXPECT_EQ(finished_->message(), "stopped by the operator");
}

TEST_F(CoreTest, ASwitchThatOneServerHoldsWhenTheJobEndsIsAnswered) {
  StartJob();
  EnterPlan(1);
  mute_ = {1};
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  Do(core_->RequestSwitch(request, 7, now_));
  v1::TaskMessage holds;
  *holds.mutable_task() = ServerTask(1);
  holds.mutable_announce_ack()->set_generation(2);
  holds.mutable_announce_ack()->set_highest_started_step(2);
  Deliver(holds);
  EXPECT_EQ(CountSent(ServerTask(1), v1::Directive::kCommit), 2);
  EXPECT_TRUE(answers_.empty());
  Do(core_->Abort("enough", now_));
  ASSERT_TRUE(answers_.contains(7));
  EXPECT_EQ(answers_.at(7).status(), absl::AbortedError("the switch was dropped: the job has ended"));
}

TEST_F(CoreTest, WorkersThatAreLostTogetherAreOneAmendment) {
  StartJob();
  Beat(WorkerTask(0), 5, 1);
  now_ += absl::Seconds(0.5);
  Beat(WorkerTask(1), 5, 1);
  now_ += absl::Seconds(0.5);
  for (uint32_t i = 0; i < 2; ++i) Do(core_->OnDisconnect(WorkerTask(i), now_));
  Pass(absl::Seconds(6), {"worker 0", "worker 1"});
  EXPECT_EQ(core_->Status(now_).plan().amendment(), 1u);
  EXPECT_EQ(core_->Status(now_).plan().members_size(), 0);
  EXPECT_EQ(Lines(Line::kMember).size(), 2u);
}

TEST_F(CoreTest, ALostWorkerIsAmendedOutAndItsShardsAreGivenOutAgain) {
  StartJob();
  AskShard(WorkerTask(0), 1);
  AskShard(WorkerTask(1), 1);
  Pass(absl::Seconds(6), {"worker 0"});
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(core_->Status(now_).plan().amendment(), 1u);
  EXPECT_EQ(core_->Status(now_).plan().members_size(), 1);
  EXPECT_EQ(AskShard(WorkerTask(1), 2).shard(), 1u);
  EXPECT_TRUE(Contains(log_, "worker 0 evicted: no heartbeat for 5.0 s"));
  ASSERT_EQ(Lines(Line::kMember).size(), 1u);
  EXPECT_EQ(Lines(Line::kMember)[0].member().task(), "worker 0");
  EXPECT_EQ(Lines(Line::kMember)[0].member().reason(), "no heartbeat for 5.0 s");
  Beat(WorkerTask(0));
  EXPECT_TRUE(Contains(Last(WorkerTask(0)).stop().error(), "evicted: no heartbeat"));
}

TEST_F(CoreTest, AWorkerThatGivesUpIsEvictedWithItsReason) {
  StartJob();
  Leave(WorkerTask(1), "disk full");
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(Lines(Line::kMember)[0].member().reason(), "disk full");
  EXPECT_EQ(core_->Status(now_).plan().members_size(), 1);
}

TEST_F(CoreTest, ANonFiniteGradientUnderStopJobFailsTheJob) {
  StartJob();
  Leave(WorkerTask(1), "step 7: the gradient of linear0.weight is not finite", v1::Leaving::NOT_FINITE);
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_EQ(core_->Status(now_).error(),
            "worker 1: step 7: the gradient of linear0.weight is not finite; consistency.on_non_finite is STOP_JOB");
  EXPECT_EQ(CountSent(WorkerTask(0), v1::Directive::kStop), 1);
}

TEST_F(CoreTest, AFullTableFailsTheJob) {
  StartJob();
  Leave(ServerTask(0), "table 'users': 5 new rows", v1::Leaving::TABLE_FULL);
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_EQ(core_->Status(now_).error(), "server 0: table 'users': 5 new rows");
  EXPECT_EQ(CountSent(WorkerTask(0), v1::Directive::kStop), 1);
}

TEST_F(CoreTest, NoTextOfAWorkerEndsTheJob) {
  StartJob();
  Leave(WorkerTask(1), "STOP_JOB: as a message of an old worker");
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
}

TEST_F(CoreTest, FailsWhenNoWorkerIsLeftAfterALease) {
  StartJob();
  Leave(WorkerTask(0), "out of memory");
  Leave(WorkerTask(1), "disk full");
  Pass(absl::Seconds(4));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  Pass(absl::Seconds(2));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_TRUE(Contains(core_->Status(now_).error(), "worker 0: out of memory; worker 1: disk full"));
}

TEST_F(CoreTest, AReplacementWorkerJoinsAndTheJobGoesOn) {
  StartJob();
  Leave(WorkerTask(0), "preempted");
  Leave(WorkerTask(1), "preempted");
  Pass(absl::Seconds(3));
  Register(WorkerTask(0, 2));
  EXPECT_TRUE(Last(WorkerTask(0)).has_commit());
  v1::Plan plan = core_->Status(now_).plan();
  EXPECT_EQ(plan.generation(), 2u);
  EXPECT_EQ(plan.first_step(), 11);
  ASSERT_EQ(plan.members_size(), 1);
  EXPECT_EQ(plan.members(0).incarnation(), 2u);
  Pass(absl::Seconds(6));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
}

TEST_F(CoreTest, AnOperatorsSwitchIsAnsweredWithTheCommittedPlan) {
  StartJob();
  Beat(WorkerTask(0), 5, 1);
  Beat(WorkerTask(1), 5, 1);
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  Do(core_->RequestSwitch(request, 7, now_));
  ASSERT_EQ(answers_.count(7), 1u);
  EXPECT_EQ(answers_.at(7)->plan().generation(), 2u);
  EXPECT_EQ(answers_.at(7)->plan().mode(), v1::ASYNC);
  EXPECT_TRUE(Last(WorkerTask(0)).has_commit());
  Do(core_->RequestSwitch(request, 8, now_));
  EXPECT_EQ(answers_.count(8), 0u);
  EXPECT_EQ(core_->WaitingFor(), "worker 0, worker 1 to enter plan 2");
  Beat(WorkerTask(0), 11, 2);
  Beat(WorkerTask(1), 11, 2);
  EXPECT_EQ(answers_.at(8)->plan().generation(), 3u);
}

TEST_F(CoreTest, ASwitchIsRefusedBeforeTraining) {
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  Do(core_->RequestSwitch(request, 1, now_));
  EXPECT_EQ(answers_.at(1).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoreTest, APlanLineIsWrittenOnceItsMembersHaveBegun) {
  StartJob();
  Beat(WorkerTask(0), 1, 1);
  Pass(absl::Milliseconds(100));
  EXPECT_TRUE(Lines(Line::kPlan).empty());
  Beat(WorkerTask(1), 1, 1);
  Pass(absl::Milliseconds(100));
  ASSERT_EQ(Lines(Line::kPlan).size(), 1u);
  EXPECT_EQ(Lines(Line::kPlan)[0].plan().generation(), 1u);
  EXPECT_DOUBLE_EQ(Lines(Line::kPlan)[0].plan().stall_seconds(), 0.01);
}

TEST_F(CoreTest, TheMoreMembersTheFewerLinesOfProgress) {
  for (const uint32_t workers : {2u, 64u, 160u}) {
    v1::JobConfig config = SmallJob();
    config.mutable_cluster()->set_workers(workers);
    Create(config);
    alive_.clear();
    for (uint32_t i = 0; i < 2; ++i) Register(ServerTask(i));
    for (uint32_t i = 0; i < workers; ++i) Register(WorkerTask(i));
    ASSERT_EQ(core_->phase(), v1::JobStatus::TRAINING);
    metrics_.clear();
    Pass(absl::Milliseconds(10500));
    const std::vector<Line> lines = Lines(Line::kProgress);
    EXPECT_EQ(lines.size(), workers == 160 ? 4u : 10u);
    EXPECT_EQ(lines.back().progress().workers_size(), static_cast<int>(workers));
  }
}

TEST_F(CoreTest, AScheduledSwitchComesAtItsStep) {
  v1::JobConfig config = SmallJob();
  auto* entry = config.mutable_consistency()->add_schedule();
  entry->set_at_step(20);
  entry->set_mode(v1::SSP);
  entry->set_staleness_bound(2);
  Create(config);
  StartJob();
  Beat(WorkerTask(0), 19, 1);
  Beat(WorkerTask(1), 19, 1);
  Pass(absl::Milliseconds(100));
  EXPECT_EQ(core_->Status(now_).plan().generation(), 1u);
  Beat(WorkerTask(0), 20, 1);
  Pass(absl::Milliseconds(100));
  EXPECT_EQ(core_->Status(now_).plan().mode(), v1::SSP);
  EXPECT_EQ(core_->Status(now_).plan().staleness_bound(), 2);
}

// A quorum was lost if the job did not start in SYNC.
TEST_F(CoreTest, AnAsyncJobWithAScheduledSyncKeepsItsQuorum) {
  v1::JobConfig config = SmallJob();
  config.mutable_consistency()->set_mode(v1::ASYNC);
  auto* entry = config.mutable_consistency()->add_schedule();
  entry->set_at_step(20);
  entry->set_mode(v1::SYNC);
  entry->set_quorum(1);
  Create(config);
  StartJob();
  EXPECT_EQ(core_->Status(now_).plan().quorum(), 0u);
  Beat(WorkerTask(0), 20, 1);
  Beat(WorkerTask(1), 20, 1);
  Pass(absl::Milliseconds(100));
  EXPECT_EQ(core_->Status(now_).plan().mode(), v1::SYNC);
  EXPECT_EQ(core_->Status(now_).plan().quorum(), 1u);
}

TEST_F(CoreTest, AStaticPlanAfterASwitchBeginsBehindAllBatchesOfTheStepsBefore) {
  v1::JobConfig config = SmallJob();
  config.mutable_data()->set_dispatch(v1::DataConfig::STATIC);
  config.mutable_consistency()->set_sync_every(2);
  Create(config);
  StartJob();
  Beat(WorkerTask(0), 0, 1);
  Beat(WorkerTask(1), 0, 1);
  v1::SwitchModeRequest request;
  request.set_mode(v1::SYNC);
  request.set_learning_rate_scale(0.5);
  Do(core_->RequestSwitch(request, 1, now_));
  const v1::Plan plan = core_->Status(now_).plan();
  ASSERT_EQ(plan.generation(), 2u);
  EXPECT_EQ(plan.first_example(), plan.first_step() * 2 * 2 * 5);
  EXPECT_GT(plan.first_step(), 0);
}

TEST_F(CoreTest, SilenceWhileTheCoordinatorStoodStillIsForgiven) {
  StartJob();
  Pass(absl::Milliseconds(100));
  now_ += absl::Seconds(60);
  Do(core_->OnTick(now_));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_TRUE(Lines(Line::kMember).empty());
}

class CoreEvaluationTest : public CoreHarness {
 protected:
  CoreEvaluationTest() {
    v1::JobConfig config = SmallJob();
    config.mutable_cluster()->set_evaluators(1);
    Create(config);
  }
  void EndData() {
    FinishAllShards();
    Leave(WorkerTask(0));
    Leave(WorkerTask(1));
    ASSERT_EQ(core_->phase(), v1::JobStatus::FINISHING);
  }
};

TEST_F(CoreEvaluationTest, EvaluatesEveryEpochAndIgnoresRepeatedResults) {
  Register(EvaluatorTask());
  StartJob();
  Beat(WorkerTask(0), 9, 1, 90);
  Pass(absl::Milliseconds(100));
  EXPECT_EQ(CountSent(EvaluatorTask(), v1::Directive::kEvaluate), 0);
  Beat(WorkerTask(0), 10, 1, 101);
  Pass(absl::Milliseconds(100));
  ASSERT_TRUE(Last(EvaluatorTask()).has_evaluate());
  EXPECT_EQ(LastEvaluate().at_step(), 12);
  Evaluated(1, 0.75);
  Evaluated(1, 0.25);
  ASSERT_EQ(Lines(Line::kEvaluation).size(), 1u);
  EXPECT_EQ(Lines(Line::kEvaluation)[0].evaluation().accuracy(), 0.75);
  EXPECT_EQ(core_->Status(now_).evaluation_accuracy(), 0.75);
}

TEST_F(CoreEvaluationTest, TheFinalWeightsAreEvaluatedBeforeTheEnd) {
  Register(EvaluatorTask());
  StartJob();
  EndData();
  EXPECT_EQ(LastEvaluate().at_step(), -1);
  Pass(absl::Seconds(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FINISHING);
  Evaluated(LastEvaluate().evaluation_id(), 0.9);
  Pass(absl::Milliseconds(200));
  EXPECT_EQ(core_->phase(), v1::JobStatus::DONE);
  ASSERT_EQ(Lines(Line::kEvaluation).size(), 1u);
  EXPECT_TRUE(Lines(Line::kEvaluation)[0].evaluation().final());
}

// Whoever reads the record takes what stands in its last line for how the job ended.
TEST_F(CoreEvaluationTest, AnEvaluationThatComesAfterTheEndIsNotRecorded) {
  Register(EvaluatorTask());
  StartJob();
  EndData();
  Do(core_->Abort("enough", now_));
  Evaluated(LastEvaluate().evaluation_id(), 0.9);
  EXPECT_TRUE(Lines(Line::kEvaluation).empty());
  EXPECT_TRUE(metrics_.back().has_end());
}

TEST_F(CoreEvaluationTest, WhoStopsAJobThatIsBeingEvaluatedGetsItsLastWeights) {
  Register(EvaluatorTask());
  StartJob();
  EndData();
  mute_ = {1};
  Do(core_->RequestStop("enough", now_));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FINISHING);
  EXPECT_EQ(core_->WaitingFor(), "server 1 to write checkpoint final");
  ASSERT_TRUE(Restart().ok());
  mute_.clear();
  Register(ServerTask(0));
  Register(ServerTask(1));
  Pass(absl::Milliseconds(200));
  EXPECT_EQ(core_->Status(now_).end().kind(), v1::Stop::STOPPED);
  EXPECT_EQ(core_->Status(now_).end().checkpoint(), "checkpoints/final");
  EXPECT_EQ(core_->Status(now_).error(), "enough");
}

TEST_F(CoreEvaluationTest, AReplacedEvaluatorIsAskedAgain) {
  Register(EvaluatorTask());
  StartJob();
  EndData();
  Register(EvaluatorTask(2));
  EXPECT_TRUE(Last(EvaluatorTask()).has_evaluate());
}

TEST_F(CoreEvaluationTest, GoesOnWithoutADeadEvaluatorAfterTwoLeases) {
  Register(EvaluatorTask());
  StartJob();
  EndData();
  Pass(absl::Seconds(14), {"evaluator 0"});
  EXPECT_EQ(core_->phase(), v1::JobStatus::FINISHING);
  Pass(absl::Seconds(2), {"evaluator 0"});
  EXPECT_EQ(core_->phase(), v1::JobStatus::DONE);
  EXPECT_TRUE(Contains(log_, "the final weights are not evaluated"));
}

TEST_F(CoreEvaluationTest, WaitsForAnEvaluatorThatHasNotComeYet) {
  StartJob();
  EndData();
  Pass(absl::Seconds(30));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FINISHING);
  Register(EvaluatorTask());
  EXPECT_TRUE(Last(EvaluatorTask()).has_evaluate());
}

}  // namespace
}  // namespace rubato::coordinator
