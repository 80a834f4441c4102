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
using ::testing::Not;
using ::testing::StartsWith;

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
