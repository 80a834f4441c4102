#include "cli/capacity/recorded_steps.h"

#include <string>

#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

constexpr SimTime kMs = 1'000'000;

const std::vector<LayerExchange> kLayers = {{.name = "a"}, {.name = "b"}};

TraceSpan Span(const std::string& name, const std::string& category, SimTime begin, SimTime end) {
  return {.name = name, .category = category, .begin = begin * kMs, .end = end * kMs};
}

// A step of 100 ms: 2 of data, 10 of waiting for layer a, 20 of pause. What lies between spans is work, too.
void AddStep(SimTime at, TraceRow* row) {
  for (TraceSpan span :
       {Span("step", "step", 0, 100), Span("next batch", "data", 0, 2), Span("await a", "pull", 3, 13),
        Span("forward a", "compute", 13, 18), Span("forward relu", "compute", 18, 20), Span("await b", "pull", 20, 21),
        Span("forward b", "compute", 21, 30), Span("begin step", "pull", 30, 32),
        Span("slowed down", "compute", 32, 52), Span("backward b", "compute", 52, 60), Span("push b", "push", 60, 62),
        Span("backward a", "compute", 62, 80), Span("push a", "push", 80, 90)}) {
    span.begin += at * kMs;
    span.end += at * kMs;
    row->spans.push_back(span);
  }
}

TEST(RecordedStepsTest, DividesAStepByItsWaitsAndPushes) {
  TraceRow row = {.name = "trainer"};
  AddStep(0, &row);
  const std::vector<RecordedStep> steps = ReadRecordedSteps({.rows = {row}}, kLayers);
  ASSERT_EQ(steps.size(), 1u);
  const RecordedStep& step = steps[0];
  EXPECT_NEAR(step.lead, 3e-3, 1e-9);
  EXPECT_NEAR(step.forward[0], 7e-3, 1e-9);
  EXPECT_NEAR(step.forward[1], 9e-3, 1e-9);
  EXPECT_NEAR(step.pause, 20e-3, 1e-9);
  EXPECT_NEAR(step.backward[1], 10e-3, 1e-9);
  EXPECT_NEAR(step.backward[0], 28e-3, 1e-9);
  EXPECT_NEAR(step.tail, 10e-3, 1e-9);
  // All of the step but its waits of 10, 1 and 2 ms.
  EXPECT_NEAR(
      step.lead + step.forward[0] + step.forward[1] + step.pause + step.backward[0] + step.backward[1] + step.tail,
      87e-3, 1e-9);
}

TEST(RecordedStepsTest, LeavesOutStepsThatAreNotWhole) {
  TraceRow row = {.name = "trainer"};
  // The recording began in the middle of it.
  row.spans = {Span("step", "step", 0, 100), Span("backward b", "compute", 52, 60), Span("push b", "push", 60, 62)};
  AddStep(100, &row);
  EXPECT_EQ(ReadRecordedSteps({.rows = {row}}, kLayers).size(), 1u);
  EXPECT_TRUE(ReadRecordedSteps({.rows = {row}}, {{.name = "a"}, {.name = "c"}}).empty());
  EXPECT_TRUE(ReadRecordedSteps({}, kLayers).empty());
}

TEST(RecordedStepsTest, CountsStepsASecond) {
  TraceRow row = {.name = "trainer"};
  for (int step = 0; step < 5; ++step) AddStep(100 * step, &row);
  EXPECT_NEAR(StepRateOf({.rows = {row}}), 10, 1e-9);
  EXPECT_EQ(StepRateOf({}), 0);
}

}  // namespace
}  // namespace rubato::capacity
