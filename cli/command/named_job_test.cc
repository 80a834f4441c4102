#include "cli/command/named_job.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kConnectionError[] = "coordinator at 127.0.0.1:9: failed to connect to all addresses";

class NamedJobTest : public ::testing::Test {
 protected:
  NamedJobTest() : directory_(fs::path(::testing::TempDir()) / "run") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }

  void Write(const std::string& name, const std::string& text) { std::ofstream(directory_ / name) << text; }

  void EndRun() {
    Write("metrics.jsonl", R"({"end":{"t":3.0,"ok":false,"error":"server 1 is lost","examples":1,)"
                           R"("examples_per_second":1,"non_finite":0,"overflows":0}})"
                           "\n");
  }

  const fs::path directory_;
};

// Commands used to print gRPC's connection error.
TEST_F(NamedJobTest, ARunThatHasEndedSaysSoInsteadOfAConnectionError) {
  Write("coordinator.address", "127.0.0.1:9\n");
  EndRun();
  const absl::StatusOr<NamedJob> job = FindJob(directory_.string());
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_TRUE(job->ending.has_value());
  EXPECT_EQ(job->ending->error, "server 1 is lost");
  const absl::Status running = FindRunningJob(directory_.string()).status();
  EXPECT_EQ(running.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(running.message()), HasSubstr("failed on "));
  EXPECT_THAT(std::string(running.message()), HasSubstr("server 1 is lost"));
}

TEST_F(NamedJobTest, ARunThatEndsBeforeItIsAskedSaysSoToo) {
  Write("coordinator.address", "127.0.0.1:9\n");
  const absl::StatusOr<NamedJob> job = FindRunningJob(directory_.string());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->address, "127.0.0.1:9");
  EndRun();
  const absl::Status status = ExplainSilence(*job, absl::UnavailableError(kConnectionError));
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 1 is lost"));
}

TEST_F(NamedJobTest, ACoordinatorThatWasKilledIsSaidToBe) {
  Write("coordinator.address", "127.0.0.1:9\n");
  const absl::Status status = ExplainSilence(*FindJob(directory_.string()), absl::UnavailableError(kConnectionError));
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not answer at 127.0.0.1:9"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--resume"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("failed to connect")));
}

TEST_F(NamedJobTest, AnAddressWhereNothingAnswersSaysWhatToCheck) {
  const absl::StatusOr<NamedJob> job = FindRunningJob("127.0.0.1:9");
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::Status status = ExplainSilence(*job, absl::UnavailableError(kConnectionError));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing answers at 127.0.0.1:9. Check that"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("failed to connect")));
}

TEST_F(NamedJobTest, OtherErrorsStayAsTheyAre) {
  const NamedJob job = *FindJob("127.0.0.1:9");
  EXPECT_EQ(ExplainSilence(job, absl::FailedPreconditionError("no")).message(), "no");
  EXPECT_TRUE(ExplainSilence(job, absl::OkStatus()).ok());
  EXPECT_EQ(FindJob("nowhere").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FindJob(directory_.string()).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace rubato
