#include <gtest/gtest.h>

#include "coordinator/rules/compact_journal.h"
#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

class CoreRollbackTest : public CoreHarness {
 protected:
  void Train(const v1::JobConfig& config) {
    Create(config);
    StartJob();
    EnterPlan(1);
  }
  // A cut of all steps before 11.
  void Cut() {
    Do(core_->RequestCheckpoint(1, now_));
    WriteCut();
    ASSERT_FALSE(cuts_.empty());
  }
  static v1::JobConfig StaticJob() {
    v1::JobConfig config = SmallJob();
    config.mutable_data()->set_dispatch(v1::DataConfig::STATIC);
    return config;
  }
};

TEST_F(CoreRollbackTest, ALostServerTakesTheJobBackToItsBeginning) {
  Train(SmallJob());
  const uint64_t fingerprint = Last(WorkerTask(0)).job().fingerprint();
  Pass(absl::Seconds(6), {"server 1"});
  EXPECT_EQ(restarts_, 1);
  EXPECT_EQ(core_->phase(), v1::JobStatus::STARTING);
  EXPECT_TRUE(Last(WorkerTask(0)).has_restart());
  EXPECT_TRUE(Last(ServerTask(0)).has_restart());
  EXPECT_EQ(Last(WorkerTask(0)).restart().reason(), "server 1 (10.0.0.9:900) is lost: no heartbeat for 5.0 s");
  ComeBack();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  const v1::JobDescription job = Last(WorkerTask(0, 2)).job();
  EXPECT_NE(job.fingerprint(), fingerprint);
  EXPECT_FALSE(job.has_restore());
  EXPECT_EQ(job.plan().first_step(), 0);
  EXPECT_EQ(job.plan().generation(), 2u);
  EXPECT_GT(job.term(), job.rollback_term());
  EXPECT_EQ(job.rollback_term(), 2u);
  // It has begun once.
  EXPECT_EQ(Lines(Line::kStart).size(), 1u);
  EXPECT_EQ(Lines(Line::kRollback).size(), 1u);
  EXPECT_EQ(core_->Status(now_).counts().rollbacks_total(), 1);
  EXPECT_EQ(core_->Status(now_).counts().evicted_total(), 1);
}

TEST_F(CoreRollbackTest, ASwitchThatTheRollbackOvertakesIsAnswered) {
  Train(SmallJob());
  mute_ = {1};
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  Do(core_->RequestSwitch(request, 7, now_));
  Pass(absl::Seconds(6), {"server 1"});
  EXPECT_EQ(restarts_, 1);
  ASSERT_TRUE(answers_.contains(7));
  EXPECT_EQ(
      answers_.at(7).status(),
      absl::AbortedError("the switch was dropped: server 1 (10.0.0.9:900) is lost: no heartbeat for 5.0 s; the job "
                         "goes back to its last checkpoint"));
}

TEST_F(CoreRollbackTest, AServerThatWasStartedAgainTakesTheJobBackAtOnce) {
  Train(SmallJob());
  Register(ServerTask(1, 2));
  EXPECT_EQ(restarts_, 1);
  // It has registered with the core before.
  EXPECT_TRUE(Last(ServerTask(1, 2)).has_restart());
  incarnation_ = 2;
  ComeBack();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
}

TEST_F(CoreRollbackTest, TheJobGoesOnFromItsLastCheckpoint) {
  Train(StaticJob());
  Cut();
  Register(ServerTask(0, 2));
  incarnation_ = 2;
  ComeBack();
  const v1::JobDescription job = Last(WorkerTask(0, 3)).job();
  EXPECT_EQ(job.restore().name(), "step11");
  EXPECT_EQ(job.restore().id(), 1u);
  EXPECT_EQ(job.plan().first_step(), 11);
  // Two workers, batches of 5.
  EXPECT_EQ(job.plan().first_example(), 110);
  EXPECT_GT(job.plan().generation(), 2u);
  // Nothing is written at the start.
  EXPECT_EQ(CountSent(ServerTask(0), v1::Directive::kCheckpoint), 1);
  ASSERT_EQ(Lines(Line::kRollback).size(), 1u);
  EXPECT_EQ(Lines(Line::kRollback)[0].rollback().step(), 11);
  EXPECT_DOUBLE_EQ(core_->Status(now_).step(), 11);
  EXPECT_EQ(core_->Status(now_).checkpoint().rollback_reason(), "server 0 is lost: replaced by a new incarnation");
}

TEST_F(CoreRollbackTest, ShardsThatAreInTheCheckpointAreNotGivenOutAgain) {
  Train(SmallJob());
  for (uint64_t i = 1; i <= 3; ++i) AskShard(WorkerTask(0), i);
  AskShard(WorkerTask(0), 4, {1});
  Do(core_->RequestCheckpoint(1, now_));
  const uint64_t generation = core_->Status(now_).plan().generation();
  v1::CutProgress first = Written(1, true);
  for (auto [shard, next] : {std::pair<uint64_t, int64_t>(2, 20), {3, 25}, {4, 30}}) {
    first.add_shards()->set_shard(shard);
    first.mutable_shards(first.shards_size() - 1)->set_next(next);
  }
  ReportCut(WorkerTask(0), first, 11, generation);
  ReportCut(WorkerTask(1), Written(1, true), 11, generation);
  ReportCut(ServerTask(0), Written(1));
  ReportCut(ServerTask(1), Written(1));
  AskShard(WorkerTask(0), 5, {2, 3});
  Register(ServerTask(0, 2));
  incarnation_ = 2;
  ComeBack();
  EXPECT_EQ(core_->Status(now_).examples_done(), 25);
  const v1::ShardGrant rest = AskShard(WorkerTask(1, 3), 1);
  EXPECT_EQ(rest.shard(), 3u);
  EXPECT_EQ(rest.begin(), 25);
  EXPECT_EQ(rest.end(), 30);
  EXPECT_EQ(AskShard(WorkerTask(1, 3), 2).shard(), 4u);
  EXPECT_EQ(AskShard(WorkerTask(1, 3), 3, {3}).shard(), 5u);
  EXPECT_EQ(core_->Status(now_).examples_done(), 30);
}

TEST_F(CoreRollbackTest, WhoIsOfThePastIsToldToStartAgain) {
  Train(SmallJob());
  Register(ServerTask(1, 2));
  sent_.clear();
  // Its stream had broken: it has not heard of it.
  Register(WorkerTask(1));
  EXPECT_TRUE(Last(WorkerTask(1)).has_restart());
  Beat(WorkerTask(0));
  EXPECT_TRUE(Last(WorkerTask(0)).has_restart());
  EXPECT_EQ(core_->Status(now_).tasks_size(), 0);
}

TEST_F(CoreRollbackTest, GoesOnWithoutAServerThatDoesNotComeBack) {
  Train(SmallJob());
  Cut();
  Pass(absl::Seconds(6), {"server 1"});
  incarnation_ = 2;
  Register(ServerTask(0, 2));
  Register(WorkerTask(0, 2));
  Register(WorkerTask(1, 2));
  Pass(absl::Seconds(8));
  EXPECT_EQ(core_->phase(), v1::JobStatus::STARTING);
  Pass(absl::Seconds(3));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  const v1::JobDescription job = Last(WorkerTask(0, 2)).job();
  EXPECT_EQ(job.servers_size(), 1);
  EXPECT_GT(job.chunks_size(), 0);
  for (const v1::ChunkPlacement& chunk : job.chunks()) EXPECT_EQ(chunk.server(), 0u);
  EXPECT_TRUE(Contains(log_, "goes on without server 1"));
}

TEST_F(CoreRollbackTest, AServerThatTheJobGoesOnWithoutMayFailToRestore) {
  Train(SmallJob());
  Cut();
  Pass(absl::Seconds(6), {"server 1"});
  incarnation_ = 2;
  Register(ServerTask(0, 2));
  Register(WorkerTask(0, 2));
  Register(WorkerTask(1, 2));
  Pass(absl::Seconds(11));
  ASSERT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  const int restarts = CountSent(WorkerTask(0, 2), v1::Directive::kRestart);
  Register(ServerTask(1, 2));
  Leave(ServerTask(1, 2), "checkpoint step11 is gone", v1::Leaving::CANNOT_RESTORE);
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(CountSent(WorkerTask(0, 2), v1::Directive::kRestart), restarts);
}

TEST_F(CoreRollbackTest, ARestartedCoordinatorKnowsWhereTheJobWent) {
  Train(StaticJob());
  Cut();
  Register(ServerTask(0, 2));
  incarnation_ = 2;
  ComeBack();
  const v1::JobStatus before = core_->Status(now_);
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(core_->Status(now_).plan().first_step(), 11);
  EXPECT_EQ(core_->Status(now_).plan().generation(), before.plan().generation());
  EXPECT_EQ(core_->Status(now_).term(), before.term() + 1);
  EXPECT_EQ(core_->Status(now_).counts().rollbacks_total(), 1);
  EXPECT_EQ(core_->Status(now_).checkpoint().last(), "step11");
  // And again, between the rollback and the return of the tasks.
  Register(ServerTask(0, 4));
  ASSERT_EQ(core_->phase(), v1::JobStatus::STARTING);
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(core_->phase(), v1::JobStatus::STARTING);
  incarnation_ = 4;
  ComeBack();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(Last(WorkerTask(0, 5)).job().plan().first_step(), 11);
}

TEST_F(CoreRollbackTest, ACompactedJournalSaysTheSame) {
  Train(SmallJob());
  Cut();
  for (uint64_t i = 1; i <= 5; ++i) AskShard(WorkerTask(0), i);
  Register(ServerTask(0, 2));
  incarnation_ = 2;
  ComeBack();
  AskShard(WorkerTask(1, 3), 1);
  ASSERT_TRUE(Restart().ok());
  const std::string before = core_->Status(now_).DebugString();
  const size_t records = journal_.size();
  journal_ = CompactJournal(journal_);
  EXPECT_LT(journal_.size(), records);
  // The restart before this one has begun a term.
  v1::JobStatus after;
  ASSERT_TRUE(Restart().ok());
  after = core_->Status(now_);
  after.set_term(after.term() - 1);
  EXPECT_EQ(after.DebugString(), before);
  // An old incarnation is still known as one.
  Register(WorkerTask(0));
  EXPECT_TRUE(Last(WorkerTask(0)).has_restart());
}

TEST_F(CoreRollbackTest, AnUnreadableCheckpointGivesWayToTheOneBefore) {
  Train(StaticJob());
  Cut();
  started_ = 30;
  EnterPlan(20);
  Do(core_->RequestCheckpoint(2, now_));
  WriteCut();
  ASSERT_EQ(cuts_.size(), 2u);
  Register(ServerTask(0, 2));
  mute_ = {0, 1};  // They read.
  incarnation_ = 2;
  ComeBack();
  ASSERT_EQ(Last(ServerTask(0, 3)).commit().plan().first_step(), 31);
  Leave(ServerTask(0, 3), "checkpoints/step31/server-0.data: its CRC is wrong", v1::Leaving::CANNOT_RESTORE);
  mute_ = {};
  ComeBack();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(Last(WorkerTask(0, 4)).job().restore().name(), "step11");
}

// Its parts may still be of use to somebody; from the beginning they would be removed.
TEST_F(CoreRollbackTest, AnUnreadableCheckpointWithoutOneBeforeEndsTheJob) {
  Train(StaticJob());
  Cut();
  Register(ServerTask(0, 2));
  mute_ = {0, 1};  // They read.
  incarnation_ = 2;
  ComeBack();
  Leave(ServerTask(0, 3), "checkpoints/step11/server-0.data: its CRC is wrong", v1::Leaving::CANNOT_RESTORE);
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_EQ(
      core_->Status(now_).error(),
      "server 0: checkpoints/step11/server-0.data: its CRC is wrong; there is no other checkpoint, and this one is "
      "left as it is");
}

// Somebody stops a server that reads: the checkpoint is as good as before.
TEST_F(CoreRollbackTest, AServerThatLeavesForAnotherReasonCostsNoCheckpoint) {
  Train(StaticJob());
  Cut();
  Register(ServerTask(0, 2));
  mute_ = {0, 1};
  incarnation_ = 2;
  ComeBack();
  Leave(ServerTask(0, 3), "stopped by signal SIGTERM");
  mute_ = {};
  ComeBack();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(Last(WorkerTask(0, 4)).job().restore().name(), "step11");
}

TEST_F(CoreRollbackTest, AStoppedJobIsResumedFromWhereItStopped) {
  Train(StaticJob());
  Do(core_->RequestStop("lunch", now_));
  WriteCut();
  Do(core_->OnTick(now_));
  ASSERT_EQ(core_->phase(), v1::JobStatus::FAILED);
  // A supervisor that starts it again does not resume it.
  EXPECT_EQ(Restart().code(), absl::StatusCode::kFailedPrecondition);
  resume_ended_ = true;
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(core_->phase(), v1::JobStatus::STARTING);
  ComeBack();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(Last(WorkerTask(0, 2)).job().restore().name(), "stopped");
  EXPECT_EQ(Last(WorkerTask(0, 2)).job().plan().generation(), 3u);
  // And who starts the coordinator again then does not stop it.
  resume_ended_ = false;
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
}

// What it goes on from stays whole until there is something newer.
TEST_F(CoreRollbackTest, AJobThatIsStoppedAgainDoesNotWriteOverWhereItWentOnFrom) {
  Train(StaticJob());
  Do(core_->RequestStop("lunch", now_));
  WriteCut();
  Do(core_->OnTick(now_));
  resume_ended_ = true;
  ASSERT_TRUE(Restart().ok());
  ComeBack();
  ASSERT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EnterPlan(core_->Status(now_).plan().first_step());
  Do(core_->RequestStop("dinner", now_));
  const std::string name = core_->Status(now_).plan().cut().name();
  EXPECT_EQ(name.substr(0, 4), "step");
  WriteCut();
  Do(core_->OnTick(now_));
  ASSERT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_EQ(core_->Status(now_).end().kind(), v1::Stop::STOPPED);
  EXPECT_EQ(core_->Status(now_).end().checkpoint(), "checkpoints/" + name);
}

TEST_F(CoreRollbackTest, ADoneJobIsNotResumed) {
  Train(SmallJob());
  FinishAllShards();
  Leave(WorkerTask(0));
  Leave(WorkerTask(1));
  Do(core_->OnTick(now_));
  ASSERT_EQ(core_->phase(), v1::JobStatus::DONE);
  resume_ended_ = true;
  EXPECT_EQ(Restart().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoreRollbackTest, AServerIsLostWhileTheLastCheckpointIsWritten) {
  Train(SmallJob());
  Cut();
  FinishAllShards();
  mute_ = {0, 1};
  Leave(WorkerTask(0));
  Leave(WorkerTask(1));
  Do(core_->OnTick(now_));
  ASSERT_EQ(core_->phase(), v1::JobStatus::FINISHING);
  Register(ServerTask(0, 2));
  mute_ = {};
  incarnation_ = 2;
  ComeBack();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(Last(WorkerTask(0, 3)).job().plan().first_step(), 11);
}

TEST_F(CoreRollbackTest, ACoordinatorOfThePastGivesWay) {
  Train(SmallJob());
  v1::TaskMessage message;
  *message.mutable_task() = WorkerTask(0);
  message.set_term(9);
  message.mutable_heartbeat();
  Deliver(message);
  ASSERT_TRUE(finished_.has_value());
  EXPECT_EQ(finished_->message(), "worker 0 knows of term 9, this coordinator of 1: another one has taken its place");
  sent_.clear();
  Beat(WorkerTask(0));
  Do(core_->OnTick(now_));
  EXPECT_TRUE(sent_.empty());
}

}  // namespace
}  // namespace rubato::coordinator
