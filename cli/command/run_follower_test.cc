#include "cli/command/run_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace rubato {
namespace {

using testing::HasSubstr;

class RunFollowerTest : public testing::Test {
 protected:
  RunFollowerTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ + "/job.textproto") << "name: \"a\"\n";
  }
  void Write(const std::string& text) { std::ofstream(directory_ + "/metrics.jsonl", std::ios::app) << text; }

  const std::string directory_ = testing::TempDir() + "run_follower";
};

TEST_F(RunFollowerTest, TakesLinesAsTheyAreWritten) {
  RunFollower follower("sync", directory_);
  EXPECT_EQ(follower.Read().code(), absl::StatusCode::kNotFound);
  Write("{\"progress\":{\"t\":1}}\n{\"progress\":{\"t\":2}}\n{\"progress\"");
  ASSERT_TRUE(follower.Read().ok());
  EXPECT_EQ(follower.feed().News()["points"].size(), 2u);
  ASSERT_TRUE(follower.Read().ok());
  EXPECT_EQ(follower.feed().News()["points"].size(), 0u);
  Write(":{\"t\":3}}\n");
  ASSERT_TRUE(follower.Read().ok());
  EXPECT_EQ(follower.feed().News()["points"][0][0], 3.0);
  EXPECT_EQ(follower.feed().Everything()["about"]["config"], "name: \"a\"\n");
}

TEST_F(RunFollowerTest, ALineThatIsNoneIsNamedAndPassed) {
  RunFollower follower("sync", directory_);
  Write("{\"progress\":{\"t\":1}}\nnonsense\n{\"progress\":{\"t\":2}}\n");
  const absl::Status read = follower.Read();
  EXPECT_EQ(read.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(read.message()), HasSubstr("metrics.jsonl: byte 21: not a line of the run record"));
  ASSERT_TRUE(follower.Read().ok());
  EXPECT_EQ(follower.feed().News()["points"].size(), 2u);
}

}  // namespace
}  // namespace rubato
