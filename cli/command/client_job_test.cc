#include "cli/command/client_job.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "common/storage/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ClientJobTest : public ::testing::Test {
 protected:
  ClientJobTest() : root_(fs::path(::testing::TempDir()) / "client_job") {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }

  std::string File(const std::string& text) {
    const std::string path = (root_ / "cluster.textproto").string();
    std::ofstream(path) << text;
    return path;
  }

  const fs::path root_;
};

TEST_F(ClientJobTest, NeedsANumberOfWorkersAndHasDefaultsForTheRest) {
  ClientJobOptions options;
  options.workers = 4;
  const absl::StatusOr<v1::JobConfig> config = MakeClientJob(options, "train");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name(), "train");
  EXPECT_EQ(config->run_directory(), "runs/train");
  EXPECT_EQ(config->cluster().workers(), 4u);
  EXPECT_EQ(config->cluster().servers(), 1u);
  EXPECT_EQ(config->cluster().start_timeout_seconds(), 600);
  EXPECT_EQ(config->consistency().mode(), v1::SYNC);
  EXPECT_FALSE(config->has_model());
  options.workers.reset();
  EXPECT_THAT(std::string(MakeClientJob(options, "train").status().message()),
              HasSubstr("cluster.workers: value 0; allowed: 1 to 1024"));
}

TEST_F(ClientJobTest, ServersThatShareTwoCoresWithWorkersHaveOnePartition) {
  ClientJobOptions options;
  options.workers = 2;
  absl::StatusOr<v1::JobConfig> config = MakeClientJob(options, "train");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster().partitions_per_server(), std::thread::hardware_concurrency() <= 2 ? 1u : 2u);
  options.overrides = {"cluster.partitions_per_server=3"};
  config = MakeClientJob(options, "train");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster().partitions_per_server(), 3u);
  options.overrides.clear();
  options.config_path = File("cluster { partitions_per_server: 2 }");
  config = MakeClientJob(options, "train");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster().partitions_per_server(), 2u);
}

TEST_F(ClientJobTest, FlagsGoBeforeTheConfigAndSettingsBeforeBoth) {
  ClientJobOptions options;
  options.config_path = File(
      "name: 'mine' cluster { workers: 2 servers: 3 lease_seconds: 7 start_timeout_seconds: 30 } consistency { mode: "
      "SYNC quorum: 1 } "
      "checkpoint { every_steps: 10 }");
  absl::StatusOr<v1::JobConfig> config = MakeClientJob(options, "train");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name(), "mine");
  EXPECT_EQ(config->cluster().workers(), 2u);
  EXPECT_EQ(config->cluster().start_timeout_seconds(), 30);
  EXPECT_EQ(config->consistency().quorum(), 1u);
  EXPECT_EQ(config->checkpoint().every_steps(), 10);
  options.workers = 4;
  options.servers = 2;
  options.mode = "ssp:3";
  options.overrides = {"cluster.servers=5"};
  config = MakeClientJob(options, "train");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster().workers(), 4u);
  EXPECT_EQ(config->cluster().servers(), 5u);
  EXPECT_EQ(config->cluster().lease_seconds(), 7);
  EXPECT_EQ(config->consistency().mode(), v1::SSP);
  EXPECT_EQ(config->consistency().staleness_bound(), 3);
  EXPECT_EQ(config->consistency().quorum(), 0u);
}

TEST_F(ClientJobTest, ErrorsNameFlagOrFieldValueAndWhatIsAllowed) {
  ClientJobOptions options;
  options.workers = 2;
  const auto error = [&options] { return std::string(MakeClientJob(options, "train").status().message()); };
  options.mode = "fast";
  EXPECT_THAT(error(), HasSubstr("--mode: value \"fast\"; allowed: sync, async, or ssp:N"));
  options.mode.clear();
  options.overrides = {"cluster.servrs=2"};
  EXPECT_THAT(error(), HasSubstr("--set cluster.servrs=2"));
  options.overrides = {"cluster.evaluators=1"};
  EXPECT_THAT(error(), HasSubstr("cluster.evaluators: value 1; allowed: 0"));
  options.overrides.clear();
  options.config_path = File("cluster { wrkers: 1 }");
  EXPECT_THAT(error(), HasSubstr("cluster.textproto:1:"));
  options.config_path = File("model { loss: SOFTMAX_CROSS_ENTROPY }");
  EXPECT_THAT(error(), HasSubstr("cluster.textproto has a model, data or an optimizer; allowed: none of them"));
  options.config_path = (root_ / "absent").string();
  EXPECT_EQ(MakeClientJob(options, "train").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ClientJobTest, TheCommandLineNamesWhatIsWrongWithANumber) {
  CLI::App app;
  ClientJobOptions options;
  AddClientJobOptions(&app, &options);
  app.parse("-n 3 --servers=2 --set a=b --set c=d", false);
  EXPECT_EQ(options.workers, 3u);
  EXPECT_EQ(options.servers, 2u);
  EXPECT_THAT(options.overrides, ::testing::ElementsAre("a=b", "c=d"));
  for (const char* flags : {"-n 0", "-n 1025", "-n two", "--servers=0"}) {
    CLI::App again;
    ClientJobOptions others;
    AddClientJobOptions(&again, &others);
    EXPECT_THROW(again.parse(flags, false), CLI::ParseError) << flags;
  }
}

TEST_F(ClientJobTest, AJobIsCalledAfterItsScript) {
  EXPECT_EQ(NameOfCommand({"/usr/bin/python3", "src/train.py", "--lr=1"}), "train");
  EXPECT_EQ(NameOfCommand({"python", "-u", "my model.v2.py"}), "my-model-v2");
  EXPECT_EQ(NameOfCommand({"python", "-m", "pkg.train", "x"}), "pkg-train");
  EXPECT_EQ(NameOfCommand({"bash", "run.sh"}), "run");
  EXPECT_EQ(NameOfCommand({"./train_c", "3"}), "train_c");
  EXPECT_EQ(NameOfCommand({"/"}), "job");
  EXPECT_EQ(NameOfCommand({}), "job");
  EXPECT_EQ(NameOfCommand({std::string(500, 'x')}).size(), 128u);
}

TEST_F(ClientJobTest, ADirectoryIsFreeIfNothingIsInIt) {
  const std::string base = (root_ / "run").string();
  EXPECT_EQ(FreeDirectory(base), base);
  fs::create_directories(base);
  EXPECT_EQ(FreeDirectory(base), base);
  std::ofstream(base + "/file") << "x";
  fs::create_directories(base + "-2/more");
  EXPECT_EQ(FreeDirectory(base), base + "-3");
}

}  // namespace
}  // namespace rubato
