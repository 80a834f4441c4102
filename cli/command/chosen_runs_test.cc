#include "cli/command/chosen_runs.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ChosenRunsTest : public ::testing::Test {
 protected:
  ChosenRunsTest() {
    root_ = std::string(::testing::TempDir()) + "/chosen_runs";
    std::filesystem::remove_all(root_);
    Write("first/metrics.jsonl", "");
    Write("a=b/metrics.jsonl", "");
    Write("both/summary.json", R"({"modes":[
      {"mode":"sync","runs":[{"seed":1,"directory":"sync-seed1"},{"seed":2,"directory":"sync-seed2"}]},
      {"mode":"async","runs":[{"seed":1,"directory":"async-seed1"}]}]})");
    Write("bad/summary.json", R"({"modes":[{"mode":"sync"}]})");
    Write("torn/summary.json", R"({"modes":)");
    Write("empty/other", "");
  }

  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(root_) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string In(const std::string& name) const { return root_ + "/" + name; }
  static void ExpectError(const std::vector<std::string>& texts, const std::string& message) {
    EXPECT_THAT(FindRuns(texts).status().message(), HasSubstr(message));
  }

  std::string root_;
};

TEST_F(ChosenRunsTest, RunsHaveTheNamesThatAreGivenOrTheirDirectories) {
  const auto runs = FindRuns({In("first/"), "slow=" + In("first"), In("a=b")});
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_THAT(
      *runs, ElementsAre(ChosenRun{"first", In("first")}, ChosenRun{"slow", In("first")}, ChosenRun{"a=b", In("a=b")}));
}

TEST_F(ChosenRunsTest, AComparisonStandsForItsRuns) {
  const auto runs = FindRuns({In("both"), "old=" + In("both")});
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->size(), 6u);
  EXPECT_EQ((*runs)[1], (ChosenRun{"sync", In("both/sync-seed2")}));
  EXPECT_EQ((*runs)[5], (ChosenRun{"old async", In("both/async-seed1")}));
}

TEST_F(ChosenRunsTest, AComparisonThatGoesOnHasTheRunsThatItHasBegun) {
  for (const char* run : {"sync-seed1", "ssp-seed12", "sync-seed", "tune-sync-0.1"}) {
    Write(std::string("begun/") + run + "/metrics.jsonl", "");
  }
  Write("begun/logs/other", "");
  ExpectError({In("begun")}, "begun: holds neither a run nor a comparison");
  const auto runs = FindRunsSoFar({In("begun"), "new=" + In("begun"), In("first")});
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_EQ(runs->size(), 9u);
  EXPECT_EQ((*runs)[0], (ChosenRun{"ssp", In("begun/ssp-seed12")}));
  EXPECT_EQ((*runs)[1], (ChosenRun{"sync-seed", In("begun/sync-seed")}));
  EXPECT_EQ((*runs)[2], (ChosenRun{"sync", In("begun/sync-seed1")}));
  EXPECT_EQ((*runs)[3], (ChosenRun{"tune-sync-0.1", In("begun/tune-sync-0.1")}));
  EXPECT_EQ((*runs)[6], (ChosenRun{"new sync", In("begun/sync-seed1")}));
  EXPECT_EQ((*runs)[8], (ChosenRun{"first", In("first")}));
  EXPECT_THAT(FindRunsSoFar({In("empty")}).status().message(), HasSubstr("holds neither a run nor a comparison"));
}

TEST_F(ChosenRunsTest, SaysWhatIsWrong) {
  ExpectError({In("empty")}, "empty: holds neither a run nor a comparison");
  ExpectError({In("nowhere")}, "nowhere: holds neither a run nor a comparison");
  ExpectError({"=" + In("first")}, "has an empty name");
  ExpectError({In("bad")}, "bad/summary.json: a mode has no runs");
  ExpectError({In("torn")}, "torn/summary.json: has no modes");
}

}  // namespace
}  // namespace rubato
