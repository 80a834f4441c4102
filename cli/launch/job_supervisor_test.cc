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

}  // namespace
}  // namespace rubato
