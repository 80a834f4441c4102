// Workers that were asked to stop.
#include "coordinator/rules/coordinator_core.h"
#include "coordinator/testing/core_harness.h"

namespace rubato::coordinator {
namespace {

class DrainTest : public CoreHarness {
 protected:
  DrainTest() { Create(SmallJob()); }

  void UseStaticDispatch() {
    v1::JobConfig config = SmallJob();
    config.mutable_data()->set_dispatch(v1::DataConfig::STATIC);
    Create(config);
  }
};

TEST_F(DrainTest, AWorkerLeavesGracefullyAndGivesItsShardsBack) {
  StartJob();
  AskShard(WorkerTask(0), 1);
  AskShard(WorkerTask(1), 1);
  Drain(WorkerTask(0));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  EXPECT_EQ(core_->Status(now_).plan().members_size(), 1);
  EXPECT_EQ(AskShard(WorkerTask(1), 2).shard(), 1u);
  ASSERT_EQ(Lines(Line::kMember).size(), 1u);
  EXPECT_EQ(Lines(Line::kMember)[0].member().event(), v1::MemberLine::LEFT);
  EXPECT_EQ(Lines(Line::kMember)[0].member().reason(), "asked to stop");
}

TEST_F(DrainTest, UnderStaticDispatchTheOthersTakeOverItsPartInANewPlan) {
  UseStaticDispatch();
  StartJob();
  Beat(WorkerTask(0), 0, 1);
  Beat(WorkerTask(1), 0, 1);
  Drain(WorkerTask(0));
  Pass(absl::Seconds(1));
  const v1::Plan plan = core_->Status(now_).plan();
  EXPECT_EQ(plan.generation(), 2u);
  EXPECT_EQ(plan.members_size(), 1);
}

TEST_F(DrainTest, TheLastWorkerDoesNotFinishAJobWhoseDataIsNotUsedUp) {
  UseStaticDispatch();
  StartJob();
  Drain(WorkerTask(0));
  Drain(WorkerTask(1));
  EXPECT_EQ(core_->phase(), v1::JobStatus::TRAINING);
  Pass(absl::Seconds(6));
  EXPECT_EQ(core_->phase(), v1::JobStatus::FAILED);
  EXPECT_TRUE(Contains(core_->Status(now_).error(), "worker 1: asked to stop")) << core_->Status(now_).error();
}

TEST_F(DrainTest, ARestartedCoordinatorStillKnowsThatTheDataIsNotUsedUp) {
  UseStaticDispatch();
  StartJob();
  Drain(WorkerTask(0));
  Drain(WorkerTask(1));
  ASSERT_TRUE(Restart().ok());
  Pass(absl::Seconds(1));
  EXPECT_NE(core_->phase(), v1::JobStatus::FINISHING);
  EXPECT_NE(core_->phase(), v1::JobStatus::DONE);
}

}  // namespace
}  // namespace rubato::coordinator
