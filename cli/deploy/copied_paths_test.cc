#include "cli/deploy/copied_paths.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace rubato {
namespace {

std::string Copied(const std::string& path) {
  v1::JobConfig config;
  config.mutable_data()->mutable_text()->set_path(path);
  UseCopiedPaths({"data/mnist", "one.txt"}, &config);
  return config.data().text().path();
}

TEST(CopiedPathsTest, ArePathsOfTheHosts) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(Copied(here + "/data/mnist/train"), "data/mnist/train");
  EXPECT_EQ(Copied(here + "/one.txt"), "one.txt");
  EXPECT_EQ(Copied(here + "/data/mnist2/train"), here + "/data/mnist2/train");
  EXPECT_EQ(Copied("/elsewhere"), "/elsewhere");
  EXPECT_EQ(Copied("relative/path"), "relative/path");
}

}  // namespace
}  // namespace rubato
