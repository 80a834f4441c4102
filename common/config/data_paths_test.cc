#include "common/config/data_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "common/config/fingerprint.h"
#include "common/config/load.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class DataPathsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_ / "configs");
    fs::create_directories(root_ / "data");
    fs::create_directories(root_ / "work");
    fs::current_path(root_ / "work");
  }
  void TearDown() override { fs::current_path("/"); }

  std::string Write(const std::string& path) {
    std::ofstream(root_ / path) << "x";
    return (root_ / path).string();
  }
  std::string Resolved(const std::string& path) {
    v1::JobConfig config;
    config.mutable_data()->mutable_text()->set_path(path);
    ResolveReadPaths((root_ / "configs").string(), &config);
    return config.data().text().path();
  }

  fs::path root_;
};

// Data paths in a config were relative to the working directory alone.
TEST_F(DataPathsTest, AreRelativeToTheConfigFileFirst) {
  const std::string data = Write("data/text");
  EXPECT_EQ(Resolved("../data/text"), data);
  const std::string beside = Write("configs/both");
  Write("work/both");
  EXPECT_EQ(Resolved("both"), beside);
}

TEST_F(DataPathsTest, AreRelativeToTheWorkingDirectoryOtherwise) {
  const std::string data = Write("work/text");
  EXPECT_EQ(Resolved("text"), data);
}

TEST_F(DataPathsTest, StayAsTheyAreWhereThereIsNoSuchFile) {
  EXPECT_EQ(Resolved("data/elsewhere"), "data/elsewhere");
  EXPECT_EQ(Resolved("/data/elsewhere"), "/data/elsewhere");
}

TEST_F(DataPathsTest, AllPathsOfAllSourcesAreFound) {
  v1::JobConfig config;
  config.mutable_data()->mutable_cifar()->add_train_paths("a");
  config.mutable_data()->mutable_cifar()->add_train_paths("b");
  config.mutable_data()->mutable_cifar()->add_test_paths("c");
  config.mutable_training()->set_start_from("d");
  std::vector<std::string> paths;
  ForEachReadPath(&config, [&](std::string* path) { paths.push_back(*path); });
  EXPECT_THAT(paths, ElementsAre("a", "b", "c", "d"));
}

TEST_F(DataPathsTest, BytePairsAreRead) {
  v1::JobConfig config;
  config.mutable_data()->mutable_columns()->add_train_paths("a");
  config.mutable_data()->mutable_columns()->set_byte_pairs("b");
  std::vector<std::string> paths;
  ForEachReadPath(&config, [&](std::string* path) { paths.push_back(*path); });
  EXPECT_THAT(paths, ElementsAre("a", "b"));
}

TEST_F(DataPathsTest, ALoadedConfigHasAbsolutePathsFromAnyWorkingDirectory) {
  const std::string data = Write("data/train.csv");
  std::ofstream(root_ / "configs/job.textproto") << R"(
    name: "job" cluster { workers: 1 }
    model { input_shape: 2 layers { linear { units: 1 } } loss: MEAN_SQUARED_ERROR }
    data { csv { train_path: "../data/train.csv" } }
    optimizer { algorithm: SGD learning_rate: 0.1 } consistency { mode: SYNC } training { batch_size: 1 epochs: 1 })";
  const absl::StatusOr<v1::JobConfig> config = LoadJobConfig("../configs/job.textproto", {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->data().csv().train_path(), data);
}

TEST_F(DataPathsTest, MachinesMayHaveTheSameFileInOtherFolders) {
  v1::JobConfig here, there, other;
  here.mutable_data()->mutable_text()->set_path("/home/a/bible.txt");
  there.mutable_data()->mutable_text()->set_path("/srv/bible.txt");
  other.mutable_data()->mutable_text()->set_path("/srv/other.txt");
  EXPECT_EQ(ConfigFingerprint(here), ConfigFingerprint(there));
  EXPECT_NE(ConfigFingerprint(here), ConfigFingerprint(other));
}

}  // namespace
}  // namespace rubato
