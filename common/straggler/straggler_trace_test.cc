#include "common/straggler/straggler_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Write(const std::string& text) {
  const std::string path = testing::TempDir() + "/trace";
  std::ofstream(path) << text;
  return path;
}

TEST(StragglerTraceTest, ReadsSeconds) {
  const std::string path = Write("0.5\n0\r\n 1e-3\n600");
  const absl::StatusOr<StragglerModel> model = LoadStraggler("x2+trace=" + path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->factor, 2);
  EXPECT_THAT(*model->trace->seconds, ElementsAre(0.5, 0, 0.001, 600));
}

TEST(StragglerTraceTest, NamesItWithoutTheFolderThatThisProcessIsIn) {
  std::ofstream("here") << "1\n";
  const absl::StatusOr<StragglerModel> model = LoadStraggler("trace=./here");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(FormatStraggler(*model), testing::MatchesRegex("trace=/.*[^.]/here"));
  EXPECT_TRUE(LoadStraggler(FormatStraggler(*model)).ok());
}

TEST(StragglerTraceTest, SaysWhichLineIsWrong) {
  for (const char* line : {"", "a", "-1", "601", "nan", "inf", "1 2", "1,2"}) {
    const absl::Status status = LoadStraggler("trace=" + Write(std::string("1\n") + line + "\n3\n")).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("/trace, line 2: \"" + std::string(line) + "\"; allowed: seconds, 0 to 600"));
  }
}

TEST(StragglerTraceTest, RefusesAFileWithoutTimes) {
  EXPECT_THAT(std::string(LoadStraggler("trace=" + Write("")).status().message()), HasSubstr("is empty"));
  EXPECT_EQ(LoadStraggler("trace=/nonexistent").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(LoadStraggler("x0").ok());
}

TEST(StragglerTraceTest, NamesTheFlag) {
  EXPECT_EQ(LoadStragglerOf("--slow", "x0").status().message(),
            "--slow: value \"x0\": term \"x0\"; allowed: x1 to x1000, as in x3");
  EXPECT_EQ(FormatStraggler(*LoadStragglerOf("--slow", "")), "");
  EXPECT_EQ(FormatStraggler(*LoadStragglerOf("--slow", "x2")), "x2");
}

TEST(StragglerTraceTest, ReadsNoFileWithoutATrace) { EXPECT_TRUE(LoadStraggler("x2+rank").ok()); }

}  // namespace
}  // namespace rubato
