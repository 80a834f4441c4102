#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/config/load.h"

namespace rubato {
namespace {

TEST(ConfigsTest, EveryReadyJobIsGoodAndNamedAfterItsFile) {
  int jobs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("configs")) {
    if (entry.path().extension() != ".textproto") continue;
    ++jobs;
    absl::StatusOr<v1::JobConfig> config = LoadJobConfig(entry.path().string(), {});
    ASSERT_TRUE(config.ok()) << entry.path() << ":\n" << config.status();
    EXPECT_EQ(config->name(), entry.path().stem().string());
  }
  EXPECT_GE(jobs, 3);
}

// What `rubato compare` asks of a job.
TEST(ConfigsTest, DynamicJobsRunInEveryMode) {
  for (const char* path : {"configs/mnist_cnn.textproto", "configs/teacher_mlp.textproto"}) {
    for (const std::vector<std::string>& overrides :
         {std::vector<std::string>{"consistency.mode=SSP", "consistency.staleness_bound=2"},
          std::vector<std::string>{"consistency.mode=ASYNC"}}) {
      EXPECT_TRUE(LoadJobConfig(path, overrides).ok()) << path;
    }
  }
}

}  // namespace
}  // namespace rubato
