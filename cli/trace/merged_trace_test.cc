#include "cli/trace/merged_trace.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

// A task's file with one span and one end of a flow, both at `at` microseconds after its epoch.
std::string File(const std::string& task, int64_t epoch, double at, const std::string& phase, const std::string& id,
                 const Json& more = Json::object()) {
  Json data = {{"task", task}, {"epoch_unix_microseconds", epoch}, {"dropped_spans", 0}};
  data.update(more);
  Json flow = {{"name", "push"}, {"cat", "flow"}, {"ph", phase}, {"id", id}, {"ts", at}, {"pid", 0}, {"tid", 1}};
  Json span = {{"name", "span"}, {"cat", "c"}, {"ph", "X"}, {"ts", at}, {"dur", 5}, {"pid", 0}, {"tid", 1}};
  Json name = {{"name", "process_name"}, {"ph", "M"}, {"pid", 0}, {"tid", 0}, {"args", {{"name", task}}}};
  return Json({{"otherData", data}, {"traceEvents", {name, span, flow}}}).dump();
}

constexpr int64_t kEpoch = 1'700'000'000'000'000;

TEST(MergedTraceTest, PutsTasksOnOneClockWithAProcessEach) {
  MergedTrace merged;
  ASSERT_TRUE(merged.Add("worker-0.json", File("worker 0", kEpoch + 1000, 10, "s", "0xa")).ok());
  ASSERT_TRUE(merged.Add("server-0.json", File("server 0", kEpoch, 1500, "f", "0xa")).ok());
  const Json json = Json::parse(merged.ToJson());
  std::map<std::string, double> at;
  std::map<std::string, int> process;
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "process_name") process[event["args"]["name"]] = event["pid"];
    if (event["ph"] == "s" || event["ph"] == "f") at[event["ph"]] = event["ts"];
  }
  EXPECT_EQ(process, (std::map<std::string, int>{{"server 0", 1}, {"worker 0", 2}}));
  EXPECT_EQ(at["s"], 1010);
  EXPECT_EQ(at["f"], 1500);
  EXPECT_EQ(merged.CountFlows().whole, 1);
  EXPECT_EQ(merged.CountFlows().backward, 0);
}

TEST(MergedTraceTest, CorrectsAClockByWhatWasMeasured) {
  MergedTrace merged;
  // The worker's clock is 2 ms ahead of the coordinator's, so its push would seem to come after the update.
  const Json ahead = {{"clock_offset_microseconds", -2000}, {"clock_error_microseconds", 50}};
  ASSERT_TRUE(merged.Add("w", File("worker 0", kEpoch + 2000, 10, "s", "0xa", ahead)).ok());
  ASSERT_TRUE(merged.Add("s", File("server 0", kEpoch, 300, "f", "0xa")).ok());
  EXPECT_EQ(merged.CountFlows().backward, 0);
  EXPECT_EQ(merged.Tasks()[1].correction, absl::Milliseconds(-2));
  EXPECT_EQ(merged.Tasks()[1].error, absl::Microseconds(50));
}

TEST(MergedTraceTest, LeavesClocksThatAgreeBetterThanCouldBeMeasured) {
  MergedTrace merged;
  const Json near = {{"clock_offset_microseconds", -30}, {"clock_error_microseconds", 50}};
  ASSERT_TRUE(merged.Add("w", File("worker 0", kEpoch, 10, "s", "0xa", near)).ok());
  EXPECT_EQ(merged.Tasks()[0].correction, absl::ZeroDuration());
  EXPECT_TRUE(merged.Tasks()[0].measured);
}

TEST(MergedTraceTest, CountsArrowsThatGoBackward) {
  MergedTrace merged;
  ASSERT_TRUE(merged.Add("w", File("worker 0", kEpoch, 100, "s", "0xa")).ok());
  ASSERT_TRUE(merged.Add("s", File("server 0", kEpoch, 90, "f", "0xa")).ok());
  EXPECT_EQ(merged.CountFlows().backward, 1);
}

TEST(MergedTraceTest, LeavesOutArrowsWithOneEnd) {
  MergedTrace merged;
  ASSERT_TRUE(merged.Add("w", File("worker 0", kEpoch, 100, "s", "0xa")).ok());
  ASSERT_TRUE(merged.Add("s", File("server 0", kEpoch, 90, "f", "0xb")).ok());
  EXPECT_EQ(merged.CountFlows().torn, 2);
  const Json json = Json::parse(merged.ToJson());
  for (const Json& event : json["traceEvents"]) {
    EXPECT_NE(event["ph"], "s");
    EXPECT_NE(event["ph"], "f");
  }
}

TEST(MergedTraceTest, RefusesWhatIsNoTraceOfATask) {
  const std::string good = File("worker 0", kEpoch, 100, "s", "0xa");
  const std::map<std::string, std::string> bad = {
      {"{", "w.json: is no JSON"},
      {"[]", "w.json: is no JSON object with traceEvents and otherData"},
      {R"({"otherData":{},"traceEvents":[]})", "otherData: task or epoch_unix_microseconds is missing"},
      {R"({"otherData":{"task":"w","epoch_unix_microseconds":1,"dropped_spans":"x"},"traceEvents":[]})",
       "otherData.dropped_spans: is no number"},
      {R"({"otherData":{"task":"w","epoch_unix_microseconds":1},"traceEvents":[7]})", "without ph and name"},
      {R"({"otherData":{"task":"w","epoch_unix_microseconds":1},"traceEvents":[{"ph":"X","name":"n","ts":1}]})",
       "n: ts, tid, dur or id"}};
  for (const auto& [text, why] : bad) {
    MergedTrace merged;
    const absl::Status status = merged.Add("w.json", text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  MergedTrace twice;
  ASSERT_TRUE(twice.Add("w.json", good).ok());
  EXPECT_THAT(std::string(twice.Add("v.json", good).message()), HasSubstr("there is a trace of worker 0 already"));
}

}  // namespace
}  // namespace rubato
