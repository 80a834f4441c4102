#include "cli/launch/log_follower.h"

#include <cstdio>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LogFollowerTest : public ::testing::Test {
 protected:
  LogFollowerTest() : path_(::testing::TempDir() + "/follower.log") { std::remove(path_.c_str()); }

  void Write(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }

  const std::string path_;
};

TEST_F(LogFollowerTest, GivesLinesWhenTheyAreWhole) {
  LogFollower follower(path_, "[3] ");
  EXPECT_THAT(follower.Read(), IsEmpty());
  Write("one\ntw");
  EXPECT_THAT(follower.Read(), ElementsAre("[3] one"));
  Write("o\n\nthree");
  EXPECT_THAT(follower.Read(), ElementsAre("[3] two", "[3] "));
  EXPECT_THAT(follower.ReadAll(), ElementsAre("[3] three"));
  EXPECT_THAT(follower.ReadAll(), IsEmpty());
}

TEST_F(LogFollowerTest, LeavesOutWhatWasThereBefore) {
  Write("of an earlier run\n");
  LogFollower follower(path_, "");
  Write("new\n");
  EXPECT_THAT(follower.ReadAll(), ElementsAre("new"));
}

TEST_F(LogFollowerTest, ShowsAProgressBarAsItWasInTheEnd) {
  LogFollower follower(path_, "[0] ");
  Write("\r 10 %\r 50 %");
  EXPECT_THAT(follower.Read(), IsEmpty());
  Write("\r100 %\nwindows\r\n\r\r\n");
  EXPECT_THAT(follower.Read(), ElementsAre("[0] 100 %", "[0] windows", "[0] "));
}

TEST_F(LogFollowerTest, ALineWithoutEndComesInPieces) {
  LogFollower follower(path_, "");
  Write(std::string(200000, 'x'));
  size_t pieces = 0;
  size_t bytes = 0;
  for (const std::string& piece : follower.ReadAll()) {
    ++pieces;
    bytes += piece.size();
  }
  EXPECT_GT(pieces, 1u);
  EXPECT_EQ(bytes, 200000u);
}

}  // namespace
}  // namespace rubato
