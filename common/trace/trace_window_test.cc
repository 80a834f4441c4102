#include "common/trace/trace_window.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr TraceKind kStep = {"step", "step", {"step"}};

class TraceWindowTest : public testing::Test {
 protected:
  TraceWindow Make(int64_t after, int64_t steps) {
    RemoveFile(path_).IgnoreError();
    return TraceWindow({.recorder = &trace_,
                        .steps = steps,
                        .after = after,
                        .directory = directory_,
                        .file = "worker-0.json",
                        .log = &log_});
  }
  // One span, with the step's number.
  void Step(TraceWindow* window, int64_t step) {
    window->BeginStep(step);
    trace_.Span(kStep, {.track = trace_.Track("trainer"), .begin = clock_.Now(), .end = clock_.Now()}, {step});
  }
  std::vector<int> Recorded() {
    std::vector<int> steps;
    const auto json = nlohmann::json::parse(*ReadFile(path_));
    for (const auto& event : json["traceEvents"]) {
      if (event["ph"] == "X") steps.push_back(event["args"]["step"]);
    }
    return steps;
  }

  const std::string directory_ = testing::TempDir() + "/run/traces";
  const std::string path_ = directory_ + "/worker-0.json";
  FakeClock clock_;
  Logger log_{"test", &clock_};
  TraceRecorder trace_{{.task = "worker 0", .clock = &clock_}};
};

TEST_F(TraceWindowTest, WritesItsStepsWhenTheyAreOver) {
  TraceWindow window = Make(2, 3);
  for (int step = 0; step < 5; ++step) Step(&window, step);
  EXPECT_FALSE(FileExists(path_));
  Step(&window, 5);
  EXPECT_EQ(Recorded(), (std::vector<int>{2, 3, 4}));
  // Nothing after that is recorded or written again.
  ASSERT_TRUE(RemoveFile(path_).ok());
  Step(&window, 6);
  window.Finish();
  EXPECT_FALSE(FileExists(path_));
  EXPECT_FALSE(trace_.enabled());
}

TEST_F(TraceWindowTest, WritesWhatThereIsWhenTrainingEnds) {
  TraceWindow window = Make(1, 100);
  for (int step = 0; step < 3; ++step) Step(&window, step);
  window.Finish();
  EXPECT_EQ(Recorded(), (std::vector<int>{1, 2}));
}

TEST_F(TraceWindowTest, WaitsForAnotherTraceToEnd) {
  TraceWindow window = Make(1, 2);
  ASSERT_TRUE(trace_.Start());
  for (int step = 0; step < 3; ++step) Step(&window, step);
  trace_.Stop();
  for (int step = 3; step < 6; ++step) Step(&window, step);
  EXPECT_EQ(Recorded(), (std::vector<int>{3, 4}));
}

TEST_F(TraceWindowTest, WritesNothingWhereItNeverBegan) {
  TraceWindow none = Make(0, 0);
  Step(&none, 0);
  none.Finish();
  EXPECT_FALSE(FileExists(path_));
  TraceWindow late = Make(10, 1);
  Step(&late, 0);
  late.Finish();
  EXPECT_FALSE(FileExists(path_));
}

TEST_F(TraceWindowTest, AFileThatCannotBeWrittenStopsNothing) {
  TraceWindow window(
      {.recorder = &trace_, .steps = 1, .after = 0, .directory = "/dev/null/traces", .file = "a.json", .log = &log_});
  Step(&window, 0);
  Step(&window, 1);
  EXPECT_FALSE(trace_.enabled());
}

}  // namespace
}  // namespace rubato
