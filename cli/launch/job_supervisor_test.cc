#include "cli/launch/job_supervisor.h"

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "cli/launch/testing/fake_task_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr ExitResult kDone = {.code = 0};
constexpr ExitResult kFailed = {.code = 1};
constexpr ExitResult kRefused = {.code = 2};
constexpr ExitResult kKilled = {.signal = SIGKILL};

class JobSupervisorTest : public ::testing::Test {
 protected:
  JobSupervisorTest() : host_(&clock_, 2, 2), signals_(*StopSignals::Create()) {
    options_.contact_timeout = absl::Seconds(30);
    options_.on_event = [this](absl::string_view text) { events_.emplace_back(text); };
    options_.on_status = [this](const v1::JobStatus&) { ++polls_; };
    host_.on_stop = [this] { host_.EndAll(kFailed); };
  }

  absl::Status Run(const absl::Status& started = absl::OkStatus(),
                   const std::optional<std::string>& recorded_error = std::nullopt) {
    JobSupervisor supervisor(options_, &host_, &clock_, signals_.get());
    supervisor.Run(started);
    return supervisor.Result(recorded_error);
  }

  void JobFails(const std::string& error) {
    host_.status.set_phase(v1::JobStatus::FAILED);
    host_.status.set_error(error);
  }

  // What the coordinator says of a task; again and again of the same one.
  void Says(v1::TaskId::Role role, uint32_t index, uint64_t incarnation, v1::TaskStatus::State state,
            const std::string& reason = "") {
    v1::TaskStatus* status = nullptr;
    for (v1::TaskStatus& task : *host_.status.mutable_tasks()) {
      if (task.task().role() == role && task.task().index() == index) status = &task;
    }
    if (status == nullptr) status = host_.status.add_tasks();
    status->mutable_task()->set_role(role);
    status->mutable_task()->set_index(index);
    status->mutable_task()->set_incarnation(incarnation);
    status->set_state(state);
    status->set_reason(reason);
  }

  void KillEverySecond(v1::TaskId::Role role, uint32_t index, int seconds) {
    for (int i = 1; i <= seconds; ++i) {
      host_.At(absl::Seconds(i), [this, role, index] { host_.End(role, index, kKilled); });
    }
  }

  void InterruptAt(absl::Duration time) {
    host_.At(time, [] { kill(getpid(), SIGINT); });
  }

  FakeClock clock_;
  FakeTaskHost host_;
  std::unique_ptr<StopSignals> signals_;
  JobSupervisor::Options options_;
  std::vector<std::string> events_;
  int polls_ = 0;
};

TEST_F(JobSupervisorTest, ShowsAJobUntilAllItsTasksHaveEnded) {
  host_.At(absl::Seconds(60), [&] { host_.End(v1::TaskId::COORDINATOR, 0, kDone); });
  host_.At(absl::Seconds(61), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_GE(polls_, 200);
  EXPECT_THAT(events_, IsEmpty());
  EXPECT_THAT(host_.calls, IsEmpty());
}

TEST_F(JobSupervisorTest, EndsTasksThatOutliveTheirCoordinator) {
  host_.stubborn = true;
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::COORDINATOR, 0, kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, ElementsAre("terminate", "kill"));
}

TEST_F(JobSupervisorTest, AJobThatCouldNotBeStartedIsEnded) {
  const absl::Status status = Run(absl::InternalError("there is no such program"));
  EXPECT_EQ(status.message(), "there is no such program");
  EXPECT_THAT(host_.calls, ElementsAre("terminate"));
}

TEST_F(JobSupervisorTest, ATaskThatDiesBeforeTheStartStopsTheJob) {
  host_.status.set_phase(v1::JobStatus::STARTING);
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::WORKER, 1, kFailed); });
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(),
            "worker 1 ended before the job could begin\nworker 1 ended with exit status 1; log of worker 1");
  EXPECT_THAT(host_.calls, ElementsAre("ask to stop: worker 1 ended before the job could begin"));
}

TEST_F(JobSupervisorTest, ATaskThatRefusesItsConfigIsInvalid) {
  host_.status.set_phase(v1::JobStatus::STARTING);
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::SERVER, 0, kRefused); });
  EXPECT_EQ(Run().code(), absl::StatusCode::kInvalidArgument);
}

// The coordinator is away for a moment when a worker ends with an error, and nobody knows yet whether the job goes on.
TEST_F(JobSupervisorTest, ADeathIsJudgedWhenTheCoordinatorAnswersAgain) {
  host_.status.set_phase(v1::JobStatus::STARTING);
  host_.At(absl::Seconds(1), [&] {
    host_.silent = true;
    host_.End(v1::TaskId::WORKER, 1, kFailed);
  });
  host_.At(absl::Seconds(5), [&] {
    EXPECT_THAT(events_, IsEmpty());
    host_.silent = false;
  });
  EXPECT_THAT(std::string(Run().message()), HasSubstr("worker 1 ended before the job could begin"));
}

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

// It used to name the coordinator's exit status first, and the server afterwards.
TEST_F(JobSupervisorTest, AKilledServerIsNamedBeforeTheCoordinatorsExitStatus) {
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::SERVER, 1, kKilled); });
  host_.At(absl::Seconds(2), [&] { JobFails("server 1: its parameters are lost"); });
  host_.At(absl::Seconds(3), [&] { host_.EndAll(kFailed); });
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(),
            "server 1 ended with signal 9 (Killed); log of server 1\n"
            "Then the job failed: server 1: its parameters are lost");
  EXPECT_THAT(events_, ElementsAre("server 1 was killed by signal 9; it is started again"));
}

// All is seen in one look, or the cause even after what came of it, as on another host.
TEST_F(JobSupervisorTest, AKilledServerIsNamedFirstWhereverItIsSeenLast) {
  host_.At(absl::Seconds(1), [&] {
    JobFails("server 1: its parameters are lost");
    host_.End(v1::TaskId::COORDINATOR, 0, kFailed);
    host_.End(v1::TaskId::WORKER, 0, kFailed);
  });
  host_.At(absl::Seconds(2), [&] {
    host_.End(v1::TaskId::WORKER, 1, kFailed);
    host_.End(v1::TaskId::SERVER, 1, kKilled);
    host_.EndAll(kFailed);
  });
  EXPECT_EQ(Run(absl::OkStatus(), "server 1: no heartbeat for 5.0 s").message(),
            "server 1 ended with signal 9 (Killed); log of server 1\n"
            "Then the job failed: server 1: no heartbeat for 5.0 s");
}

TEST_F(JobSupervisorTest, DeathsAreNamedInTheirOrder) {
  host_.At(absl::Seconds(1), [&] { host_.End(v1::TaskId::WORKER, 1, kKilled); });
  host_.At(absl::Seconds(2), [&] { host_.End(v1::TaskId::SERVER, 0, kKilled); });
  host_.At(absl::Seconds(3), [&] { host_.EndAll(kFailed); });
  EXPECT_EQ(std::string(Run(absl::OkStatus(), "server 0 is gone").message()),
            "worker 1 ended with signal 9 (Killed); log of worker 1\n"
            "server 0 ended with signal 9 (Killed)\n"
            "Then the job failed: server 0 is gone");
}

// A worker ends with an error because its job was stopped; that is nothing to be shown.
TEST_F(JobSupervisorTest, AJobStoppedByItsOperatorDoesNotEndInAWorkersErrorLog) {
  host_.At(absl::Seconds(1), [&] {
    JobFails("stopped by the operator at 127.0.0.1:9");
    host_.End(v1::TaskId::WORKER, 0, kFailed);
  });
  host_.At(absl::Seconds(2), [&] { host_.EndAll(kFailed); });
  EXPECT_EQ(Run(absl::OkStatus(), "stopped by the operator at 127.0.0.1:9").message(),
            "stopped by the operator at 127.0.0.1:9");
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(JobSupervisorTest, AnInterruptAsksTheJobToStop) {
  InterruptAt(absl::Seconds(1));
  EXPECT_EQ(Run(absl::OkStatus(), "stopped by the operator").message(), "stopped by a signal");
  EXPECT_THAT(events_, ElementsAre("stopping the job: stopped by a signal"));
  EXPECT_THAT(host_.calls, ElementsAre("ask to stop: stopped by a signal"));
}

TEST_F(JobSupervisorTest, ASecondInterruptTerminatesAndAThirdKills) {
  host_.on_stop = nullptr;
  host_.stubborn = true;
  options_.grace = absl::Minutes(10);
  for (int second : {1, 2, 3}) InterruptAt(absl::Seconds(second));
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(host_.calls, ElementsAre("ask to stop: stopped by a signal", "terminate", "kill"));
  EXPECT_LE(clock_.Now() - absl::UnixEpoch(), absl::Seconds(4));
}

TEST_F(JobSupervisorTest, WhatDoesNotStopIsEndedByForce) {
  host_.on_stop = nullptr;
  host_.stubborn = true;
  InterruptAt(absl::Seconds(1));
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(host_.calls, ElementsAre("ask to stop: stopped by a signal", "terminate", "kill"));
  EXPECT_THAT(events_, ElementsAre("stopping the job: stopped by a signal"));
}

TEST_F(JobSupervisorTest, ACoordinatorThatCannotBeAskedIsTerminatedAtOnce) {
  InterruptAt(absl::Seconds(1));
  host_.At(absl::Milliseconds(900), [&] { host_.silent = true; });
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(host_.calls, ElementsAre("ask to stop: stopped by a signal", "terminate"));
  EXPECT_LE(clock_.Now() - absl::UnixEpoch(), absl::Seconds(2));
}

TEST_F(JobSupervisorTest, TheTimeLimitStopsTheJob) {
  options_.time_limit = absl::Seconds(100);
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "the job did not end within 1m40s");
  EXPECT_THAT(host_.calls, ElementsAre("ask to stop: the job did not end within 1m40s"));
}

TEST_F(JobSupervisorTest, ASilentCoordinatorEndsTheJob) {
  host_.At(absl::Seconds(10), [&] { host_.silent = true; });
  host_.At(absl::Seconds(20), [&] { host_.End(v1::TaskId::WORKER, 0, kFailed); });
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "the coordinator has not answered for 30s: nobody answers; log of coordinator");
  EXPECT_EQ(events_[0], "worker 0 ended with exit status 1; log of worker 0");
}

TEST_F(JobSupervisorTest, SaysWhatItsHostHasToSay) {
  host_.At(absl::Seconds(1), [&] { host_.Say("lost contact with node7"); });
  host_.At(absl::Seconds(2), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(events_, ElementsAre("lost contact with node7"));
}

// Workers 0 and 1 are somebody's programs.
class ClientsTest : public JobSupervisorTest {
 protected:
  ClientsTest() { options_.clients = 2; }

  void JobIsDoneAt(absl::Duration time) {
    host_.At(time, [this] {
      host_.End(v1::TaskId::COORDINATOR, 0, kDone);
      for (uint32_t i = 0; i < 2; ++i) host_.End(v1::TaskId::SERVER, i, kDone);
      host_.End(v1::TaskId::EVALUATOR, 0, kDone);
    });
  }
  void ClientEndsAt(absl::Duration time, uint32_t index, ExitResult result) {
    host_.At(time, [this, index, result] { host_.End(v1::TaskId::WORKER, index, result); });
  }
};

TEST_F(ClientsTest, MayGoOnWhenTheJobIsDone) {
  JobIsDoneAt(absl::Seconds(1));
  ClientEndsAt(absl::Seconds(2), 0, kDone);
  ClientEndsAt(absl::Minutes(20), 1, kDone);
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, IsEmpty());
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(ClientsTest, ThatGoOnAreEndedByTheTimeLimit) {
  options_.time_limit = absl::Seconds(30);
  JobIsDoneAt(absl::Seconds(1));
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, ElementsAre("terminate"));
}

TEST_F(ClientsTest, AnInterruptEndsThoseThatGoOn) {
  JobIsDoneAt(absl::Seconds(1));
  InterruptAt(absl::Seconds(30));
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(host_.calls, ElementsAre("terminate"));
}

TEST_F(ClientsTest, OneThatEndsWithAnErrorEndsTheJob) {
  ClientEndsAt(absl::Seconds(1), 1, kFailed);
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "worker 1 ended with exit status 1; log of worker 1");
  EXPECT_THAT(host_.calls, ElementsAre("ask to stop: worker 1 ended with exit status 1"));
}

TEST_F(ClientsTest, OneThatEndsWithAnErrorIsStartedAgainIfThatIsWanted) {
  options_.restart_failed = true;
  ClientEndsAt(absl::Seconds(1), 1, kFailed);
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, ElementsAre("start again worker 1"));
  EXPECT_THAT(events_, ElementsAre("worker 1 ended with exit status 1; it is started again; log of worker 1"));
}

TEST_F(ClientsTest, OneThatIsKilledIsStartedAgainAndNotBlamedForAJobThatIsDone) {
  ClientEndsAt(absl::Seconds(1), 1, kKilled);
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, ElementsAre("start again worker 1"));
}

TEST_F(ClientsTest, OneThatIsKilledAgainAndAgainBeforeTheJobBeginsEndsIt) {
  host_.status.set_phase(v1::JobStatus::STARTING);
  Says(v1::TaskId::WORKER, 0, 7, v1::TaskStatus::ALIVE);
  KillEverySecond(v1::TaskId::WORKER, 1, 60);
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), StartsWith("worker 1 was lost more than 5 times within 1m\n"));
}

TEST_F(ClientsTest, OneThatHasDoneItsPartIsNotMissed) {
  ClientEndsAt(absl::Seconds(1), 0, kDone);
  host_.At(absl::Seconds(60), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(host_.calls, IsEmpty());
}

TEST_F(ClientsTest, OneThatHasNotTakenPartEndsTheJobBeforeItBegins) {
  host_.status.set_phase(v1::JobStatus::STARTING);
  ClientEndsAt(absl::Seconds(1), 0, kDone);
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("worker 0 ended before the job could begin; its program has not taken part in it\n"));
}

TEST_F(ClientsTest, AFailureAfterTheJobIsAFailure) {
  JobIsDoneAt(absl::Seconds(1));
  ClientEndsAt(absl::Seconds(2), 0, kFailed);
  ClientEndsAt(absl::Seconds(3), 1, kDone);
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "the job is done, but worker 0 ended with exit status 1; log of worker 0");
}

// The others are told, and end with errors too.
TEST_F(ClientsTest, OfAJobThatFailedTheOneThatItNamesIsShown) {
  host_.At(absl::Seconds(1), [&] {
    JobFails("worker 1: ValueError: no such file");
    host_.End(v1::TaskId::WORKER, 0, kFailed);
    host_.End(v1::TaskId::WORKER, 1, kFailed);
  });
  host_.At(absl::Seconds(2), [&] { host_.EndAll(kFailed); });
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(),
            "worker 1 ended with exit status 1; log of worker 1\n"
            "Then the job failed: worker 1: ValueError: no such file");
}

TEST_F(ClientsTest, OneThatFailedWhileTheCoordinatorWasSilentIsShown) {
  host_.silent = true;
  ClientEndsAt(absl::Seconds(1), 1, kFailed);
  ClientEndsAt(absl::Seconds(2), 0, kFailed);
  host_.At(absl::Seconds(9), [&] { host_.EndAll(kFailed); });
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), StartsWith("worker 1 ended with exit status 1; log of worker 1\n"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("worker 0")));
}

TEST_F(ClientsTest, TheirLinesAreShown) {
  std::vector<std::string> lines;
  options_.on_output = [&lines](absl::string_view line) { lines.emplace_back(line); };
  host_.At(absl::Seconds(1), [&] { host_.Write("[0] one"); });
  host_.At(absl::Seconds(2), [&] { host_.EndAll(kDone); });
  EXPECT_TRUE(Run().ok());
  EXPECT_THAT(lines, ElementsAre("[0] one"));
}

}  // namespace
}  // namespace rubato
