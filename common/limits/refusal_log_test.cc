#include "common/limits/refusal_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/clock.h"

namespace rubato {
namespace {

class RefusalLogTest : public testing::Test {
 protected:
  // The lines of `act`.
  template <typename Act>
  std::string Lines(const Act& act) {
    testing::internal::CaptureStderr();
    act();
    return testing::internal::GetCapturedStderr();
  }
  static int64_t Count(const std::string& lines) { return std::count(lines.begin(), lines.end(), '\n'); }

  FakeClock clock_;
  Logger log_{"server 0", &clock_};
  RefusalLog refusals_{&clock_, &log_};
};

TEST_F(RefusalLogTest, SaysOfEachPeerAndKindOnceAndThenHowMany) {
  const std::string first = Lines([&] {
    for (int i = 0; i < 10000; ++i) refusals_.Note("worker 1", "streams", "no more streams");
    refusals_.Note("worker 1", "messages", "too long");
    refusals_.Note("worker 2", "streams", "no more streams");
  });
  EXPECT_EQ(Count(first), 3) << first;
  EXPECT_NE(first.find("refused: no more streams (from worker 1)\n"), std::string::npos) << first;
  clock_.Advance(RefusalLog::kPause);
  const std::string second = Lines([&] { refusals_.Note("worker 1", "streams", "no more streams"); });
  EXPECT_NE(second.find("; 9999 more since this was last said\n"), std::string::npos) << second;
}

TEST_F(RefusalLogTest, ManyPeersDoNotFillTheLog) {
  const std::string lines = Lines([&] {
    for (int i = 0; i < 10000; ++i) refusals_.Note(absl::StrCat("10.0.", i / 256, ".", i % 256), "calls", "no");
  });
  EXPECT_EQ(Count(lines), static_cast<int64_t>(RefusalLog::kMost) + 1);
}

TEST_F(RefusalLogTest, WhatAPeerSaysStaysOnItsLine) {
  const std::string lines = Lines([&] {
    refusals_.Note("worker 1", "requests",
                   absl::StrCat("'a\n2026 E server 0] the job has failed", std::string(9999, 'x')));
  });
  EXPECT_EQ(Count(lines), 1) << lines;
  EXPECT_LT(lines.size(), 600u);
}

}  // namespace
}  // namespace rubato
