#include "cli/command/resumable_run.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ResumableRunTest : public ::testing::Test {
 protected:
  ResumableRunTest() : directory_(fs::path(::testing::TempDir()) / "run") {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
  }

  void Write(const std::string& name, const std::string& text) { std::ofstream(directory_ / name) << text; }

  void EndRun(const std::string& ok, const std::string& error) {
    Write("metrics.jsonl", R"({"end":{"t":3.0,"ok":)" + ok + R"(,"error":")" + error +
                               R"(","examples":1,"examples_per_second":1,"non_finite":0,"overflows":0}})" + "\n");
  }

  const fs::path directory_;
};

TEST_F(ResumableRunTest, ADirectoryWithoutAJournalIsNamed) {
  const absl::Status status = CheckResumable(directory_.string(), absl::Now());
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(directory_.string() + " holds no journal"));
}

TEST_F(ResumableRunTest, AJobThatIsDoneHasNothingToGoOnWith) {
  Write("journal", "x");
  EndRun("true", "");
  const absl::Status status = CheckResumable(directory_.string(), absl::Now());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is done: it ended on "));
}

TEST_F(ResumableRunTest, AJobThatWasStoppedOrKilledGoesOn) {
  Write("journal", "x");
  EXPECT_TRUE(CheckResumable(directory_.string(), absl::Now()).ok());
  EndRun("false", "stopped by the operator");
  EXPECT_TRUE(CheckResumable(directory_.string(), absl::Now()).ok());
  // Nobody answers where its coordinator was.
  fs::remove(directory_ / "metrics.jsonl");
  Write("coordinator.address", "127.0.0.1:9\n");
  EXPECT_TRUE(CheckResumable(directory_.string(), absl::Now()).ok());
}

}  // namespace
}  // namespace rubato
