#include "cli/capacity/step_source.h"

#include <set>

#include "common/straggler/straggler_model.h"
#include "gtest/gtest.h"

namespace rubato::capacity {
namespace {

std::vector<RecordedStep> Steps(int count) {
  std::vector<RecordedStep> steps;
  for (int i = 0; i < count; ++i) steps.push_back({.lead = static_cast<double>(i), .pause = 0.5});
  return steps;
}

TEST(StepSourceTest, DrawsDependOnWorkerAndStepAlone) {
  const std::vector<RecordedStep> steps = Steps(50);
  StepSource forward({.steps = &steps, .seed = 1, .worker = 3}), again({.steps = &steps, .seed = 1, .worker = 3});
  std::set<const RecordedStep*> drawn;
  for (int64_t step = 0; step < 200; ++step) drawn.insert(forward.At(step).work);
  EXPECT_GT(drawn.size(), 40u);
  for (int64_t step = 200; step-- > 0;) EXPECT_EQ(again.At(step).work, forward.At(step).work);
}

TEST(StepSourceTest, WithoutAStragglerItPausesAsRecorded) {
  const std::vector<RecordedStep> steps = Steps(1);
  StepSource source({.steps = &steps});
  EXPECT_EQ(source.At(0).pause, 0.5);
  EXPECT_EQ(source.At(0).factor, 1);
}

TEST(StepSourceTest, AStragglerTakesThePlaceOfWhatWasRecorded) {
  const std::vector<RecordedStep> steps = Steps(1);
  const Straggler straggler(*ParseStraggler("x3+sleep=10ms"), {.seed = 1, .worker = 0, .workers = 1});
  StepSource source({.steps = &steps, .straggler = straggler});
  EXPECT_NEAR(source.At(0).pause, 0.03, 1e-12);
  EXPECT_EQ(source.At(0).factor, 3);
}

}  // namespace
}  // namespace rubato::capacity
