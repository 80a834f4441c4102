#include "common/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rubato {
namespace {

LogEntry Entry() {
  return {.time = absl::FromUnixMillis(1769860800123),
          .severity = 'W',
          .who = "worker 1",
          .incarnation = 0x89abcdef01234567,
          .generation = 2,
          .step = 140,
          .message = "it \"waits\"\nlong"};
}

TEST(LogTest, TextHasWhoWhereAndWhat) {
  LogEntry entry = Entry();
  entry.message = "it waits";
  EXPECT_EQ(FormatLogLine(entry, LogFormat::kText), "2026-01-31T12:00:00.123Z W worker 1 89abcdef g2 s140] it waits\n");
}

TEST(LogTest, TextLeavesOutWhatIsNotKnown) {
  LogEntry entry = {.time = absl::UnixEpoch(), .who = "coordinator", .message = "m"};
  EXPECT_EQ(FormatLogLine(entry, LogFormat::kText), "1970-01-01T00:00:00.000Z I coordinator] m\n");
  entry.incarnation = 0x123456789;
  EXPECT_EQ(FormatLogLine(entry, LogFormat::kText), "1970-01-01T00:00:00.000Z I coordinator 00000001] m\n");
}

TEST(LogTest, JsonIsOneLineWithEveryField) {
  const std::string line = FormatLogLine(Entry(), LogFormat::kJson);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const nlohmann::json json = nlohmann::json::parse(line);
  EXPECT_EQ(json["time"], "2026-01-31T12:00:00.123Z");
  EXPECT_EQ(json["severity"], "warning");
  EXPECT_EQ(json["role"], "worker");
  EXPECT_EQ(json["index"], 1);
  EXPECT_EQ(json["incarnation"], "89abcdef01234567");
  EXPECT_EQ(json["generation"], 2);
  EXPECT_EQ(json["step"], 140);
  EXPECT_EQ(json["message"], "it \"waits\"\nlong");
}

TEST(LogTest, JsonReplacesWhatIsNoUtf8) {
  LogEntry entry = Entry();
  entry.message = "\xff?";
  const nlohmann::json json = nlohmann::json::parse(FormatLogLine(entry, LogFormat::kJson));
  EXPECT_EQ(json["message"], "\xef\xbf\xbd?");
}

TEST(LogTest, APositionHoldsForTheLinesThatFollow) {
  FakeClock clock;
  Logger log("server 0", &clock, {.incarnation = uint64_t{7} << 32});
  testing::internal::CaptureStderr();
  log.Info("a");
  log.SetPosition(3, 9);
  log.Error("b");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "1970-01-01T00:00:00.000Z I server 0 00000007] a\n1970-01-01T00:00:00.000Z E server 0 00000007 g3 s9] b\n");
}

}  // namespace
}  // namespace rubato
