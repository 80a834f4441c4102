#include "cli/command/named_job.h"

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
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

  static absl::StatusOr<NamedJob> Find(const std::string& place) { return FindJob({.place = place}, absl::Now()); }

  const fs::path directory_;
};

TEST_F(NamedJobTest, ARunsDirectoryHasItsCredentials) {
  Write("coordinator.address", "127.0.0.1:9\n");
  EXPECT_NE(Find(directory_.string())->security, nullptr);
  EXPECT_EQ(Find("127.0.0.1:9")->security, nullptr);
  EXPECT_NE(FindJob({.place = "127.0.0.1:9", .credentials = directory_.string()}, absl::Now())->security, nullptr);
  Write("job.textproto", "name: \"job\" security { insecure: true }");
  EXPECT_EQ(Find(directory_.string())->security, nullptr);
}

// Commands used to print gRPC's connection error.
TEST_F(NamedJobTest, ARunThatHasEndedSaysSoInsteadOfAConnectionError) {
  Write("coordinator.address", "127.0.0.1:9\n");
  EndRun();
  const absl::StatusOr<NamedJob> job = Find(directory_.string());
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_TRUE(job->ending.has_value());
  EXPECT_EQ(job->ending->error, "server 1 is lost");
  const absl::Status running = FindRunningJob({.place = directory_.string()}, absl::Now()).status();
  EXPECT_EQ(running.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(running.message()), HasSubstr("failed on "));
  EXPECT_THAT(std::string(running.message()), HasSubstr("server 1 is lost"));
}

TEST_F(NamedJobTest, ARunThatEndsBeforeItIsAskedSaysSoToo) {
  Write("coordinator.address", "127.0.0.1:9\n");
  const absl::StatusOr<NamedJob> job = FindRunningJob({.place = directory_.string()}, absl::Now());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->address, "127.0.0.1:9");
  EndRun();
  const absl::Status status = ExplainSilence(*job, absl::UnavailableError(kConnectionError));
  EXPECT_THAT(std::string(status.message()), HasSubstr("server 1 is lost"));
}

TEST_F(NamedJobTest, ACoordinatorThatWasKilledIsSaidToBe) {
  Write("coordinator.address", "127.0.0.1:9\n");
  const absl::Status status = ExplainSilence(*Find(directory_.string()), absl::UnavailableError(kConnectionError));
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not answer at 127.0.0.1:9"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--resume"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("failed to connect")));
}

TEST_F(NamedJobTest, AnAddressWhereNothingAnswersSaysWhatToCheck) {
  const absl::StatusOr<NamedJob> job = FindRunningJob({.place = "127.0.0.1:9"}, absl::Now());
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::Status status = ExplainSilence(*job, absl::UnavailableError(kConnectionError));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing answers at 127.0.0.1:9. Check that"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("failed to connect")));
}

TEST_F(NamedJobTest, SilenceSaysWhetherItWasCalledWithTls) {
  NamedJob job = *Find("127.0.0.1:9");
  const auto explained = [&] {
    return std::string(ExplainSilence(job, absl::UnavailableError(kConnectionError)).message());
  };
  EXPECT_THAT(explained(), HasSubstr("It was called without TLS: a job of several hosts needs --credentials"));
  job.credentials = directory_.string();
  EXPECT_THAT(explained(), HasSubstr("without TLS, since " + directory_.string() + " has no ca.crt"));
  Write("ca.crt", "an authority");
  EXPECT_THAT(explained(), HasSubstr("It was called with TLS"));
}

TEST_F(NamedJobTest, OtherErrorsStayAsTheyAre) {
  const NamedJob job = *Find("127.0.0.1:9");
  EXPECT_EQ(ExplainSilence(job, absl::FailedPreconditionError("no")).message(), "no");
  EXPECT_TRUE(ExplainSilence(job, absl::OkStatus()).ok());
  EXPECT_EQ(Find("nowhere").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Find(directory_.string()).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace rubato
