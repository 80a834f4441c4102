#include "cli/command/run_directory.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectoryTest() : directory_(fs::path(::testing::TempDir()) / "run_directory") { fs::remove_all(directory_); }

  void Write(const std::string& name, const std::string& text = "x") {
    fs::path path = directory_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  const fs::path directory_;
};

TEST_F(RunDirectoryTest, MakesANewOne) {
  EXPECT_TRUE(PrepareRunDirectory((directory_ / "a/b").string(), false).ok());
  EXPECT_TRUE(fs::is_directory(directory_ / "a/b"));
  EXPECT_TRUE(PrepareRunDirectory((directory_ / "a/b").string(), false).ok());
}

TEST_F(RunDirectoryTest, RefusesOneThatIsNotEmpty) {
  Write("metrics.jsonl");
  absl::Status status = PrepareRunDirectory(directory_.string(), false);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--overwrite"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--resume"));
  EXPECT_TRUE(fs::exists(directory_ / "metrics.jsonl"));
}

TEST_F(RunDirectoryTest, OverwritesAnEarlierRunOrComparison) {
  for (const char* name :
       {"job.textproto", "journal", "updates-server0-partition0.log", "logs/worker-0.log", "summary.json.tmp",
        "checkpoints/final/server-0.data", "sync-seed1/metrics.jsonl", "page.address"}) {
    Write(name);
  }
  EXPECT_TRUE(PrepareRunDirectory(directory_.string(), true).ok());
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(RunDirectoryTest, DeletesNothingThatNoRunHasWritten) {
  for (const char* name : {"thesis.txt", "src/main.cc", "a/b/metrics.jsonl"}) {
    fs::remove_all(directory_);
    Write("job.textproto");
    Write(name);
    absl::Status status = PrepareRunDirectory(directory_.string(), true);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << name;
    EXPECT_TRUE(fs::exists(directory_ / "job.textproto"));
    EXPECT_TRUE(fs::exists(directory_ / name));
  }
}

TEST_F(RunDirectoryTest, CredentialsMayBeThereBeforeAndStay) {
  Write("credentials/ca.crt");
  EXPECT_TRUE(PrepareRunDirectory(directory_.string(), false).ok());
  Write("metrics.jsonl");
  EXPECT_TRUE(PrepareRunDirectory(directory_.string(), true).ok());
  EXPECT_FALSE(fs::exists(directory_ / "metrics.jsonl"));
  EXPECT_TRUE(fs::exists(directory_ / "credentials/ca.crt"));
}

TEST_F(RunDirectoryTest, RefusesAFile) {
  Write("file");
  EXPECT_FALSE(PrepareRunDirectory((directory_ / "file").string(), true).ok());
}

TEST_F(RunDirectoryTest, KnowsTheAddressOfARunsCoordinator) {
  Write("coordinator.address", "127.0.0.1:4711\n");
  EXPECT_EQ(*CoordinatorAddress(directory_.string()), "127.0.0.1:4711");
  EXPECT_EQ(*CoordinatorAddress("example:80"), "example:80");
  EXPECT_EQ(CoordinatorAddress("nowhere").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CoordinatorAddress(directory_.parent_path().string()).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace rubato
