#include "cli/launch/job_supervisor.h"

#include <string>

#include "cli/launch/testing/supervisor_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(JobSupervisorTest, ALostTaskIsStartedAgainAtOnce) {
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::WORKER, 1, kFailed); });
  host_.At(absl::Seconds(2), [&] { host_.End(v1::TaskId::SERVER, 0, kKilled); });
  host_.At(absl::Seconds(3), [&] { host_.End(v1::TaskId::EVALUATOR, 0, kKilled); });
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, ElementsAre("start again worker 1", "start again server 0", "start again evaluator 0"));
  EXPECT_THAT(events_, ElementsAre("worker 1 ended with exit status 1; it is started again; log of worker 1",
                                   "server 0 was killed by signal 9; it is started again",
                                   "evaluator 0 was killed by signal 9; it is started again"));
}

TEST_F(JobSupervisorTest, ATaskThatHasDoneItsPartOrRefusesItsConfigIsNotStartedAgain) {
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::WORKER, 0, kDone); });
  host_.At(absl::Seconds(2), [&] { host_.End(v1::TaskId::WORKER, 1, kRefused); });
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, IsEmpty());
  EXPECT_THAT(events_, ElementsAre("worker 1 ended with exit status 2; log of worker 1"));
}

TEST_F(JobSupervisorTest, AKilledTaskIsStartedAgainBeforeTheJobBeginsToo) {
  host_.status.set_phase(v1::JobStatus::STARTING);
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::SERVER, 0, kKilled); });
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, ElementsAre("start again server 0", "terminate"));
}

// A rollback begins with the phase that a job begins with.
TEST_F(JobSupervisorTest, ATaskThatFailsInALaterTermIsStartedAgain) {
  host_.status.set_phase(v1::JobStatus::STARTING);
  host_.status.set_term(2);
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::SERVER, 0, kFailed); });
  host_.At(absl::Seconds(2), [&] { host_.status.set_phase(v1::JobStatus::TRAINING); });
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, ElementsAre("start again server 0"));
}

TEST_F(JobSupervisorTest, AKilledCoordinatorIsStartedAgainAndMayBeSilentMeanwhile) {
  options_.contact_timeout = absl::Seconds(3);
  // Three deaths: the third start is a second late.
  for (int i : {10, 12, 14}) {
    host_.At(absl::Seconds(i), [&] { host_.End(v1::TaskId::COORDINATOR, 0, kKilled); });
  }
  host_.At(absl::Seconds(14), [&] { host_.silent = true; });
  host_.At(absl::Seconds(17.5), [&] { host_.silent = false; });
  host_.At(absl::Seconds(20), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls,
              ElementsAre("start again coordinator", "start again coordinator", "start again coordinator"));
  EXPECT_THAT(events_, ElementsAre("the coordinator was killed by signal 9; it is started again",
                                   "the coordinator was killed by signal 9; it is started again in 500ms",
                                   "the coordinator was killed by signal 9; it is started again in 1s"));
}

TEST_F(JobSupervisorTest, ALostTaskIsStartedAgainWhenTheCoordinatorIsBackAgain) {
  host_.At(absl::Seconds(1), [&] {
    host_.End(v1::TaskId::COORDINATOR, 0, kKilled);
    host_.End(v1::TaskId::SERVER, 0, kKilled);
    host_.silent = true;
  });
  host_.At(absl::Seconds(5), [&] {
    EXPECT_THAT(host_.calls, ElementsAre("start again coordinator"));
    host_.silent = false;
  });
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, ElementsAre("start again coordinator", "start again server 0"));
}

TEST_F(JobSupervisorTest, ACoordinatorWhoseExitStatusSaysThatTheJobFailedIsNotStartedAgain) {
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::COORDINATOR, 0, kFailed); });
  EXPECT_EQ(Run().message(), "the coordinator ended with exit status 1; log of coordinator");
  EXPECT_THAT(host_.calls, ElementsAre("terminate"));
}

TEST_F(JobSupervisorTest, ACoordinatorThatIsKilledWhenItsJobIsDoneIsNotMissed) {
  host_.At(absl::Seconds(1), [&] { host_.status.set_phase(v1::JobStatus::DONE); });
  host_.At(absl::Seconds(2), [&] { host_.End(v1::TaskId::COORDINATOR, 0, kKilled); });
  host_.At(absl::Seconds(3), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run(absl::OkStatus(), "").ok());
  EXPECT_THAT(host_.calls, IsEmpty());
}

TEST_F(JobSupervisorTest, AServerThatDiesAgainAndAgainEndsTheJobWithItsName) {
  KillEverySecond(v1::TaskId::SERVER, 1, 59);
  const absl::Status status = Run(absl::OkStatus(), "stopped by the operator");
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(),
            "server 1 was lost more than 5 times within 1m\nserver 1 ended with signal 9 (Killed); log of server 1");
  ASSERT_EQ(host_.calls.size(), 6u);
  EXPECT_EQ(host_.calls.back(), "ask to stop: server 1 was lost more than 5 times within 1m");
}

TEST_F(JobSupervisorTest, ACoordinatorThatDiesAgainAndAgainEndsTheJob) {
  KillEverySecond(v1::TaskId::COORDINATOR, 0, 59);
  const absl::Status status = Run();
  EXPECT_EQ(status.message(),
            "the coordinator was lost more than 5 times within 1m\n"
            "the coordinator ended with signal 9 (Killed); log of coordinator");
  EXPECT_EQ(host_.calls.back(), "terminate");
}

TEST_F(JobSupervisorTest, AWorkerThatDiesAgainAndAgainIsLeftOutWhileThereIsAnother) {
  Says(v1::TaskId::WORKER, 0, 7, v1::TaskStatus::ALIVE);
  KillEverySecond(v1::TaskId::WORKER, 1, 59);
  host_.At(absl::Seconds(80), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(host_.calls.size(), 5u);
  EXPECT_EQ(events_.back(),
            "worker 1 was lost more than 5 times within 1m; it is not started again, and the job goes on without it\n"
            "worker 1 ended with signal 9 (Killed); log of worker 1");
}

TEST_F(JobSupervisorTest, TheLastWorkerThatDiesAgainAndAgainEndsTheJob) {
  KillEverySecond(v1::TaskId::WORKER, 1, 59);
  EXPECT_THAT(std::string(Run().message()), HasSubstr("worker 1 was lost more than 5 times within 1m\nworker 1"));
}

TEST_F(JobSupervisorTest, WhatItsHostHasStartedOftenEnoughIsNotStartedAgain) {
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::SERVER, 0, kKilled, /*for_good=*/true); });
  EXPECT_THAT(std::string(Run().message()), HasSubstr("server 0 was lost more than 5 times within 1m"));
  EXPECT_THAT(host_.calls, ElementsAre("ask to stop: server 0 was lost more than 5 times within 1m"));
}

TEST_F(JobSupervisorTest, ADeathThatTheJobHasSurvivedIsNotBlamed) {
  Says(v1::TaskId::SERVER, 1, 7, v1::TaskStatus::ALIVE);
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::SERVER, 1, kKilled); });
  host_.At(absl::Seconds(2), [&] { Says(v1::TaskId::SERVER, 1, 8, v1::TaskStatus::ALIVE); });
  host_.At(absl::Seconds(3), [&] { host_.End(v1::TaskId::COORDINATOR, 0, kKilled); });
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kFailed); });
  EXPECT_EQ(Run(absl::OkStatus(), "worker 0: its loss is not finite").message(), "worker 0: its loss is not finite");
}

TEST_F(JobSupervisorTest, ALossIsReportedOnce) {
  Says(v1::TaskId::SERVER, 1, 7, v1::TaskStatus::ALIVE);
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::SERVER, 1, kKilled); });
  host_.At(absl::Seconds(3), [&] { Says(v1::TaskId::SERVER, 1, 7, v1::TaskStatus::EVICTED, "no heartbeat"); });
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(events_, ElementsAre("server 1 was killed by signal 9; it is started again"));
}

TEST_F(JobSupervisorTest, SaysWhereTheJobWentBackTo) {
  host_.At(absl::Seconds(1), [&] {
    host_.status.set_term(2);
    host_.status.mutable_counts()->set_rollbacks_total(1);
    host_.status.mutable_checkpoint()->set_rollback_reason("server 1 is lost");
  });
  host_.At(absl::Seconds(2), [&] {
    host_.status.set_term(3);
    host_.status.mutable_counts()->set_rollbacks_total(2);
    host_.status.mutable_checkpoint()->set_last("step150");
    host_.status.mutable_checkpoint()->set_last_step(150);
  });
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(events_, ElementsAre("the job went back to its beginning (term 2): server 1 is lost",
                                   "the job went back to step 150 of checkpoint step150 (term 3): server 1 is lost"));
}

TEST_F(JobSupervisorTest, EarlierRollbacksOfAJobThatIsFollowedAreNoNews) {
  options_.followed = true;
  host_.status.set_term(3);
  host_.status.mutable_counts()->set_rollbacks_total(2);
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(JobSupervisorTest, ARollbackBeforeTheFirstAnswerIsReported) {
  host_.status.set_term(2);
  host_.status.mutable_counts()->set_rollbacks_total(1);
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(events_, ElementsAre("the job went back to its beginning (term 2)"));
}

TEST_F(JobSupervisorTest, AnEvictionIsReportedOnce) {
  v1::TaskStatus* task = host_.status.add_tasks();
  task->mutable_task()->set_role(v1::TaskId::WORKER);
  task->mutable_task()->set_incarnation(7);
  task->set_reason("no heartbeat for 5.0 s");
  task->set_state(v1::TaskStatus::EVICTED);
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(events_, ElementsAre("worker 0 is lost: no heartbeat for 5.0 s"));
}

TEST_F(JobSupervisorTest, AnEvaluatorThatDiesAgainAndAgainIsLeftOut) {
  KillEverySecond(v1::TaskId::EVALUATOR, 0, 59);
  host_.At(absl::Seconds(70), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(host_.calls.size(), 5u);
  EXPECT_THAT(events_.back(), HasSubstr("; it is not started again, and the job goes on without it\n"));
}

TEST_F(JobSupervisorTest, AnEvaluatorThatCannotBeStartedAgainIsNotTheEndOfTheJob) {
  host_.start_again = absl::InternalError("no such program");
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::EVALUATOR, 0, kKilled); });
  host_.At(absl::Seconds(30), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_EQ(host_.calls.size(), 5u);
  EXPECT_EQ(events_[1], "evaluator 0 could not be started again: no such program");
  EXPECT_THAT(events_.back(), HasSubstr("evaluator 0 was lost more than 5 times within 1m; it is not started again"));
}

TEST_F(JobSupervisorTest, AnEvaluatorThatRefusesItsDataStopsTheJob) {
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::EVALUATOR, 0, kRefused); });
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "evaluator 0 cannot evaluate\nevaluator 0 ended with exit status 2; log of evaluator 0");
  EXPECT_THAT(host_.calls, ElementsAre("ask to stop: evaluator 0 cannot evaluate"));
}

}  // namespace
}  // namespace rubato
