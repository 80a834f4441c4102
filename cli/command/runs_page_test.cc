#include "cli/command/runs_page.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace rubato {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

class RunsPageTest : public testing::Test {
 protected:
  RunsPageTest() { fs::remove_all(directory_); }
  void Write(const std::string& run, const std::string& text) {
    fs::create_directories(directory_ + "/" + run);
    std::ofstream(directory_ + "/" + run + "/metrics.jsonl", std::ios::app) << text;
  }

  const std::string directory_ = testing::TempDir() + "runs_page";
  std::vector<std::string> errors_;
  RunsPage page_{[this] { return FindRunsSoFar({directory_}); },
                 [this](absl::string_view error) { errors_.emplace_back(error); }};
};

TEST_F(RunsPageTest, TheRunsOfAComparisonComeAsTheyAreBegun) {
  EXPECT_EQ(page_.Read().code(), absl::StatusCode::kNotFound);
  Write("sync-seed1", "{\"progress\":{\"t\":1}}\n");
  ASSERT_TRUE(page_.Read().ok());
  EXPECT_EQ(Json::parse(page_.Everything())["runs"].size(), 0u);
  Json news = Json::parse(page_.News());
  ASSERT_EQ(news["runs"].size(), 1u);
  EXPECT_EQ(news["runs"][0]["about"]["name"], "sync");
  EXPECT_EQ(news["runs"][0]["points"].size(), 1u);
  Write("sync-seed1", "{\"progress\":{\"t\":2}}\n");
  Write("sync-seed2", "{\"progress\":{\"t\":1}}\n");
  page_.Refresh();
  news = Json::parse(page_.News());
  ASSERT_EQ(news["runs"].size(), 2u);
  EXPECT_FALSE(news["runs"][0].contains("about"));
  EXPECT_EQ(news["runs"][0]["points"].dump(), "[[2.0,0.0,0.0,null,0.0,null,null]]");
  EXPECT_EQ(news["runs"][1]["about"]["name"], "sync");
  const Json all = Json::parse(page_.Everything());
  EXPECT_EQ(all["runs"][0]["points"].size(), 2u);
  EXPECT_FALSE(all.contains("controls"));
  EXPECT_TRUE(errors_.empty());
}

TEST_F(RunsPageTest, WhatCannotBeReadIsSaidOnce) {
  Write("sync-seed1", "nonsense\n");
  page_.Refresh();
  page_.Refresh();
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_NE(errors_[0].find("metrics.jsonl: byte 0"), std::string::npos) << errors_[0];
}

}  // namespace
}  // namespace rubato
