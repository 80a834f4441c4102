#include "cli/capacity/task_trace.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

constexpr char kTrace[] = R"({"displayTimeUnit":"ms","otherData":{"task":"worker 1","dropped_spans":3},"traceEvents":[
{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"worker 1"}},
{"name":"forward fc","cat":"compute","ts":12.500,"ph":"X","dur":1.250,"args":{"step":7},"pid":1,"tid":1},
{"name":"step","cat":"step","ts":12.500,"ph":"X","dur":100.000,"args":{"step":7},"pid":1,"tid":1},
{"name":"push","cat":"flow","ts":13.000,"ph":"s","id":"0x1","pid":1,"tid":2},
{"name":"wait","cat":"barrier","ts":1.001,"ph":"X","dur":2.002,"args":{"step":8,"outcome":"OK"},"pid":1,"tid":2},
{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"trainer"}}
]})";

TEST(TaskTraceTest, ReadsSpansByRowInOrder) {
  const absl::StatusOr<TaskTrace> trace = ParseTaskTrace("worker-1.json", kTrace);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->task, "worker 1");
  EXPECT_EQ(trace->dropped_spans, 3);
  const TraceRow* trainer = trace->Find("trainer");
  ASSERT_NE(trainer, nullptr);
  ASSERT_EQ(trainer->spans.size(), 2u);
  EXPECT_EQ(trainer->spans[0].name, "step");  // The longer one of two that begin together.
  EXPECT_EQ(trainer->spans[1].begin, 12500);
  EXPECT_EQ(trainer->spans[1].end, 13750);
  EXPECT_EQ(trainer->spans[1].step, 7);
  EXPECT_EQ(trainer->spans[1].chunk, -1);
  EXPECT_EQ(trace->rows.back().spans[0].outcome, "OK");
  EXPECT_EQ(trace->rows.back().spans[0].end, 3003);
  EXPECT_EQ(trace->Find("nobody"), nullptr);
}

TEST(TaskTraceTest, RefusesWhatIsNone) {
  for (const char* text : {"{", "[]", R"({"traceEvents":[]})", R"({"otherData":{"task":1},"traceEvents":[]})",
                           R"({"otherData":{"task":"w"},"traceEvents":[7]})",
                           R"({"otherData":{"task":"w"},"traceEvents":[{"ph":"X","name":"n","tid":1}]})"}) {
    const absl::Status status = ParseTaskTrace("w.json", text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("w.json: is no trace of a task")) << text;
  }
}

}  // namespace
}  // namespace rubato::capacity
