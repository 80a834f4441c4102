// A coordinator that is started again, and reads its journal.
#include "coordinator/rules/coordinator_core.h"
#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

class CoreRecoveryTest : public CoreHarness {
 protected:
  CoreRecoveryTest() { Create(SmallJob()); }
  void Reconnect() {
    auto alive = alive_;
    for (const auto& [name, task] : alive) Register(task);
  }
};

TEST_F(CoreRecoveryTest, TrainingGoesOnWhereItWas) {
  StartJob();
  AskShard(WorkerTask(0), 1);
  AskShard(WorkerTask(1), 1);
  AskShard(WorkerTask(0), 2, {1});
  Pass(absl::Seconds(3));
  ASSERT_TRUE(Restart().ok());
  Reconnect();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  v1::JobStatus status = core_->Status(now_);
  EXPECT_EQ(status.examples_done(), 10);
  EXPECT_NEAR(status.seconds_since_start(), 3, 0.01);
  EXPECT_EQ(status.plan().generation(), 1u);
  EXPECT_TRUE(Last(WorkerTask(0)).has_job());
  EXPECT_EQ(Last(WorkerTask(0)).job().fingerprint(), 0x1234u);
  EXPECT_EQ(AskShard(WorkerTask(0), 3).shard(), 4u);
  EXPECT_EQ(Lines(Line::kPlan).size() + Lines(Line::kStart).size(), 1u) << "nothing is recorded twice";
}

TEST_F(CoreRecoveryTest, AnAnnouncedChangeIsCompleted) {
  StartJob();
  Beat(WorkerTask(0), 5, 1);
  Beat(WorkerTask(1), 5, 1);
  mute_ = {0, 1};
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  Do(core_->RequestSwitch(request, 7, now_));
  EXPECT_EQ(core_->Status(now_).announced_generation(), 2u);
  mute_ = {};
  ASSERT_TRUE(Restart().ok());
  Reconnect();
  EXPECT_EQ(core_->Status(now_).plan().generation(), 2u);
  EXPECT_EQ(core_->Status(now_).plan().mode(), v1::ASYNC);
}

TEST_F(CoreRecoveryTest, ADecidedChangeKeepsItsFirstStep) {
  StartJob();
  Beat(WorkerTask(0), 5, 1);
  Beat(WorkerTask(1), 5, 1);
  mute_ = {0};
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  Do(core_->RequestSwitch(request, 7, now_));
  v1::TaskMessage ack;
  *ack.mutable_task() = ServerTask(0);
  ack.mutable_announce_ack()->set_generation(2);
  ack.mutable_announce_ack()->set_highest_started_step(10);
  Deliver(ack);
  EXPECT_EQ(core_->Status(now_).plan().generation(), 1u) << "server 0 has not taken it";
  started_ = 99;
  mute_ = {};
  ASSERT_TRUE(Restart().ok());
  Reconnect();
  EXPECT_EQ(core_->Status(now_).plan().generation(), 2u);
  EXPECT_EQ(core_->Status(now_).plan().first_step(), 11);
}

// The last leases may be missing in the journal.
TEST_F(CoreRecoveryTest, AfterAnotherBootAJobWithLeasesGoesBack) {
  StartJob();
  AskShard(WorkerTask(0), 1);
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(restarts_, 0);
  boot_id_ = "second boot";
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(restarts_, 1);
  EXPECT_TRUE(Contains(log_,
                       "the coordinator's machine was started again, or is another one; the job goes back to its "
                       "beginning"))
      << log_;
  ComeBack();
  EXPECT_EQ(AskShard(WorkerTask(0, incarnation_), 1).shard(), 1u);
  // Now this boot is known.
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(restarts_, 1);
}

TEST_F(CoreRecoveryTest, ACoordinatorThatEndsBeforeItHasGoneBackDoesSoLater) {
  StartJob();
  boot_id_ = "second boot";
  ASSERT_TRUE(Restart().ok());
  // The rollback and all that came after it are lost; the record of the start is there.
  while (!journal_.back().term().has_rollback()) journal_.pop_back();
  journal_.pop_back();
  ASSERT_TRUE(journal_.back().has_term());
  restarts_ = 0;
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(restarts_, 1);
}

TEST_F(CoreRecoveryTest, AfterAnotherBootAJobWithoutLeasesGoesOn) {
  v1::JobConfig config = SmallJob();
  config.mutable_data()->set_dispatch(v1::DataConfig::STATIC);
  Create(config);
  StartJob();
  boot_id_ = "second boot";
  ASSERT_TRUE(Restart().ok());
  EXPECT_EQ(restarts_, 0);
}

TEST_F(CoreRecoveryTest, EvictedTasksStayEvicted) {
  StartJob();
  AskShard(WorkerTask(0), 1);
  Pass(absl::Seconds(6), {"worker 0"});
  alive_.erase("worker 0");
  ASSERT_TRUE(Restart().ok());
  Reconnect();
  Register(WorkerTask(0));
  EXPECT_TRUE(Last(WorkerTask(0)).has_stop());
  EXPECT_EQ(core_->Status(now_).plan().members_size(), 1);
  EXPECT_EQ(AskShard(WorkerTask(1), 1).shard(), 1u);
}

TEST_F(CoreRecoveryTest, ARestartWhileStartingStartsAllTheSame) {
  mute_ = {0, 1};
  Register(ServerTask(0));
  Register(ServerTask(1));
  Register(WorkerTask(0));
  Register(WorkerTask(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::STARTING);
  mute_ = {};
  ASSERT_TRUE(Restart().ok());
  Reconnect();
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_TRUE(Last(WorkerTask(1)).has_job());
}

TEST_F(CoreRecoveryTest, ARestartAtAnyPointOfARunLeadsToItsEnd) {
  StartJob();
  Beat(WorkerTask(0), 5, 1);
  Beat(WorkerTask(1), 5, 1);
  v1::SwitchModeRequest request;
  request.set_mode(v1::ASYNC);
  Do(core_->RequestSwitch(request, 7, now_));
  AskShard(WorkerTask(0), 1);
  Leave(WorkerTask(1), "gone");
  AskShard(WorkerTask(0), 2, {1});
  const std::vector<v1::JournalRecord> whole = journal_;
  for (size_t records = 1; records <= whole.size(); ++records) {
    SCOPED_TRACE(testing::Message() << records << " records");
    journal_.assign(whole.begin(), whole.begin() + static_cast<int64_t>(records));
    alive_.clear();
    ASSERT_TRUE(Restart().ok());
    Register(ServerTask(0));
    Register(ServerTask(1));
    Register(WorkerTask(0));
    Register(WorkerTask(5));
    Pass(absl::Seconds(12));
    EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
    const v1::Plan plan = core_->Status(now_).plan();
    for (const v1::TaskId& member : plan.members()) Beat(member, 50, plan.generation());
    uint64_t next = 100;
    std::vector<uint64_t> held = {1, 2};
    while (core_->Status(now_).examples_done() < 200 && next < 200) {
      v1::ShardGrant grant = AskShard(WorkerTask(0), ++next, held);
      if (grant.result() == v1::ShardGrant::GRANTED) held.push_back(grant.shard());
    }
    Leave(WorkerTask(0));
    Leave(WorkerTask(5));
    Pass(absl::Seconds(3));
    ASSERT_TRUE(finished_.has_value());
    EXPECT_TRUE(finished_->ok()) << *finished_;
  }
}

class CorePolicyRecoveryTest : public CoreRecoveryTest {
 protected:
  CorePolicyRecoveryTest() {
    v1::JobConfig config = SmallJob();
    auto* entry = config.mutable_consistency()->add_schedule();
    entry->set_at_step(20);
    entry->set_mode(v1::ASYNC);
    entry = config.mutable_consistency()->add_schedule();
    entry->set_at_step(30);
    entry->set_mode(v1::SSP);
    entry->set_staleness_bound(2);
    Create(config);
    StartJob();
  }
  // Both workers come to `step` under `generation`, and the policy is asked.
  void Reach(int64_t step, uint64_t generation) {
    Beat(WorkerTask(0), step, generation);
    Beat(WorkerTask(1), step, generation);
    Pass(absl::Milliseconds(300));
  }
  v1::Plan Plan() { return core_->Status(now_).plan(); }
};

TEST_F(CorePolicyRecoveryTest, AScheduledSwitchThatWasMadeIsNotMadeAgain) {
  Reach(20, 1);
  ASSERT_EQ(Plan().mode(), v1::ASYNC);
  ASSERT_TRUE(Restart().ok());
  Reconnect();
  Reach(25, 2);
  EXPECT_EQ(Plan().generation(), 2u);
  Reach(30, 2);
  EXPECT_EQ(Plan().mode(), v1::SSP);
}

TEST_F(CorePolicyRecoveryTest, AnAnnouncedScheduledSwitchIsCompletedOnce) {
  mute_ = {0, 1};
  Reach(20, 1);
  ASSERT_EQ(core_->Status(now_).announced_generation(), 2u);
  mute_ = {};
  ASSERT_TRUE(Restart().ok());
  Reconnect();
  Reach(25, 2);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Plan().generation(), 2u);
  EXPECT_EQ(Plan().mode(), v1::ASYNC);
}

TEST_F(CorePolicyRecoveryTest, AScheduledSwitchThatWaitedWhenTheCoordinatorDiedIsAskedForAgain) {
  // Nobody has entered plan 1, so the request waits and the journal knows nothing of it.
  Reach(20, 0);
  ASSERT_EQ(core_->Status(now_).announced_generation(), 0u);
  ASSERT_TRUE(Restart().ok());
  Reconnect();
  Reach(21, 1);
  EXPECT_EQ(Plan().mode(), v1::ASYNC);
}

TEST_F(CorePolicyRecoveryTest, AScheduledSwitchThatGaveWayToAnOperatorStaysDropped) {
  Reach(20, 0);
  v1::SwitchModeRequest request;
  request.set_mode(v1::SYNC);
  Do(core_->RequestSwitch(request, 7, now_));
  EXPECT_TRUE(Contains(log_, "the switch \"schedule: step 20\" gave way to a later request"));
  ASSERT_TRUE(Restart().ok());
  Reconnect();
  Reach(21, 1);
  EXPECT_EQ(Plan().mode(), v1::SYNC);
  EXPECT_EQ(Plan().generation(), 1u);
}

TEST_F(CorePolicyRecoveryTest, AMemoryThatIsNotThePolicysIsRefused) {
  Reach(20, 1);
  for (v1::JournalRecord& record : journal_) {
    if (record.has_plan()) record.mutable_plan()->set_policy_memory("of another policy");
  }
  EXPECT_EQ(Restart().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CoreRecoveryTest, RefusesAJournalOfAnotherConfigOrOfAnEndedJob) {
  StartJob();
  v1::JournalRecord header = journal_[0];
  journal_[0].mutable_header()->set_config_fingerprint(1);
  EXPECT_EQ(Restart().code(), absl::StatusCode::kFailedPrecondition);
  journal_[0] = header;
  ASSERT_TRUE(Restart().ok());
  Do(core_->RequestStop("enough", now_));
  // Whoever asks again does not wait.
  Do(core_->RequestStop("enough", now_));
  absl::Status status = Restart();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Contains(std::string(status.message()), "enough"));
}

}  // namespace
}  // namespace rubato::coordinator
