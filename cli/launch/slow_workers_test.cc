#include "cli/launch/slow_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace rubato {
namespace {

using ::testing::HasSubstr;

std::string Described(const std::vector<std::string>& slow, const std::vector<std::string>& network = {}) {
  const absl::StatusOr<SlowWorkers> slowed = ParseSlowWorkers(slow, network, 3);
  return slowed.ok() ? DescribeSlowWorkers(*slowed) : std::string(slowed.status().message());
}

TEST(SlowWorkersTest, ParsesIndexAndModel) {
  EXPECT_EQ(Described({"worker:1:x3", "worker:0:sleep=30ms+x1.5"}), "worker 1 x3, worker 0 x1.5+sleep=30ms");
  EXPECT_EQ(Described({}), "");
}

TEST(SlowWorkersTest, AWorkersOwnModelIsInsteadOfThatOfAll) {
  EXPECT_EQ(Described({"worker:*:sleep=30ms+bimodal=x6,0.125"}), "all workers sleep=30ms+bimodal=x6,0.125");
  const SlowWorkers slowed = *ParseSlowWorkers({"worker:*:exp=1ms", "worker:1:x3", "worker:2:x1"}, {}, 3);
  EXPECT_EQ(DescribeSlowWorkers(slowed), "worker 1 x3, worker 2 x1, all others exp=1ms");
  EXPECT_EQ(SettingOf(0, slowed.models), "exp=1ms");
  EXPECT_EQ(SettingOf(1, slowed.models), "x3");
  EXPECT_EQ(SettingOf(2, slowed.models), "");
  EXPECT_EQ(SettingOf(0, {}), "");
}

TEST(SlowWorkersTest, NetworksHaveTheirOwnSettings) {
  EXPECT_EQ(Described({"worker:0:x3"}, {"worker:*:rate=100mbit", "worker:1:latency=10ms", "worker:2:latency=0"}),
            "worker 0 x3, worker 1 behind latency=10ms, worker 2 behind no link, all others behind rate=100mbit");
  EXPECT_THAT(Described({}, {"worker:1:x3"}), HasSubstr("--network: value \"worker:1:x3\": \"x3\": "));
  EXPECT_THAT(Described({}, {"worker:1:rate=1mbit", "worker:1:rate=2mbit"}),
              HasSubstr("worker 1 is given twice; allowed: one link"));
}

TEST(SlowWorkersTest, ATracesFileMayHaveAnyName) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "a:b+c").lexically_normal().string();
  std::ofstream(path) << "0.5\n";
  EXPECT_EQ(Described({"worker:0:x2+trace=" + path}), "worker 0 x2+trace=" + path);
  EXPECT_THAT(Described({"worker:0:trace=/nonexistent"}),
              HasSubstr("--slow: value \"worker:0:trace=/nonexistent\": cannot "));
}

TEST(SlowWorkersTest, RefusesWhatItCannotDo) {
  for (const char* text :
       {"", "worker", "worker:1", "server:0:x3", "worker:a:x3", "worker::x3", "worker:-1:x3", "worker:3:x3", "*:x3"}) {
    EXPECT_THAT(Described({text}), HasSubstr(std::string("--slow: value \"") + text)) << text;
    EXPECT_THAT(Described({text}), HasSubstr("allowed: worker:INDEX:MODEL or worker:*:MODEL")) << text;
  }
  for (const char* text :
       {"worker:1:", "worker:1:3", "worker:1:x0.5", "worker:1:xnan", "worker:1:x1001", "worker:1:x3:"}) {
    EXPECT_THAT(Described({text}), HasSubstr(std::string("--slow: value \"") + text + "\": term \"")) << text;
  }
}

TEST(SlowWorkersTest, RefusesTheSameWorkerTwice) {
  EXPECT_THAT(Described({"worker:1:x3", "worker:1:x2"}),
              HasSubstr("\"worker:1:x2\": worker 1 is given twice; allowed: one model, with terms joined by +"));
  EXPECT_THAT(Described({"worker:*:x3", "worker:*:x2"}), HasSubstr("\"worker:*:x2\": all workers are given twice"));
}

}  // namespace
}  // namespace rubato
