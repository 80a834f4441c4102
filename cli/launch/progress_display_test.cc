#include "cli/launch/progress_display.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::HasSubstr;

v1::JobStatus Starting() {
  v1::JobStatus status;
  status.set_phase(v1::JobStatus::STARTING);
  return status;
}

TEST(ProgressDisplayTest, WritesALineEveryFiveSecondsWhereThereIsNoTerminal) {
  std::ostringstream out;
  ProgressDisplay display(&out, 0, "sync: ");
  absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < 44; ++i) display.Show(Starting(), now + i * absl::Milliseconds(250));
  EXPECT_EQ(out.str(), "sync: starting\nsync: starting\nsync: starting\n");
}

TEST(ProgressDisplayTest, RewritesOneLineOfATerminalWithinItsWidth) {
  std::ostringstream out;
  {
    ProgressDisplay display(&out, 8, "job ");
    display.Show(Starting(), absl::UnixEpoch());
  }
  EXPECT_EQ(out.str(), "\r\x1b[Kjob sta\r\x1b[K");
}

TEST(ProgressDisplayTest, KeepsMessagesApartFromTheLiveLine) {
  std::ostringstream out;
  ProgressDisplay display(&out, 80, "");
  display.Show(Starting(), absl::UnixEpoch());
  display.Print("worker 1 died");
  EXPECT_THAT(out.str(), HasSubstr("starting\r\x1b[Kworker 1 died\n"));
}

}  // namespace
}  // namespace rubato
