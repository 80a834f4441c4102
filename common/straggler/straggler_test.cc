#include "common/straggler/straggler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace rubato {
namespace {

Straggler Make(const std::string& model, const Straggler::Place& place = {.seed = 1, .worker = 0, .workers = 4}) {
  return Straggler(*ParseStraggler(model), place);
}

// All kinds that draw.
constexpr char kRandom[] = "exp=10ms+pareto=10ms,1.5+gamma=30ms,0.1+spread=0.6+bimodal=x6,0.125+markov=x4,0.02,10,200";

TEST(StragglerTest, WithoutTermsNothingIsSlower) {
  Straggler straggler({}, {});
  EXPECT_EQ(straggler.At(5).factor, 1);
  EXPECT_EQ(straggler.At(5).added, absl::ZeroDuration());
}

TEST(StragglerTest, TimesAreAddedAndFactorsMultiplied) {
  Straggler straggler =
      Make("x3+sleep=30ms+bimodal=x6,1+markov=x2,1,1,1+rank+exp=0+gamma=0,1", {.seed = 1, .worker = 1, .workers = 4});
  const StepDelay delay = straggler.At(7);
  EXPECT_EQ(delay.factor, 3 * 6 * 2 * 2);
  EXPECT_EQ(delay.added, absl::Milliseconds(30));
  EXPECT_EQ(delay.pause(), absl::Milliseconds(30 * 72));
}

TEST(StragglerTest, RanksDiffer) {
  for (uint32_t worker : {0u, 1u, 8u}) {
    const Straggler::Place place = {.seed = 1, .worker = worker, .workers = 9};
    EXPECT_EQ(Make("rank", place).At(0).factor, worker + 1);
    EXPECT_EQ(Make("rank=sqrt", place).At(0).factor, std::sqrt(worker + 1.0));
  }
}

TEST(StragglerTest, AStepIsTheSameWhateverWasAskedBefore) {
  Straggler forward = Make(kRandom);
  std::vector<StepDelay> delays;
  for (int64_t step = 0; step < 1000; ++step) delays.push_back(forward.At(step));
  Straggler back = Make(kRandom);
  for (int64_t step = 999; step >= 0; step -= 7) {
    const StepDelay delay = back.At(step), expected = delays[static_cast<size_t>(step)];
    EXPECT_EQ(delay.factor, expected.factor) << step;
    EXPECT_EQ(delay.added, expected.added) << step;
  }
}

TEST(StragglerTest, SeedsWorkersAndStepsDiffer) {
  std::set<absl::Duration> added;
  for (uint64_t seed : {1, 2}) {
    for (uint32_t worker : {0u, 1u}) {
      Straggler straggler = Make("exp=10ms", {.seed = seed, .worker = worker, .workers = 2});
      for (int64_t step = 0; step < 100; ++step) added.insert(straggler.At(step).added);
    }
  }
  EXPECT_EQ(added.size(), 400u);
}

// So that a term may be added to an experiment without others being drawn again.
TEST(StragglerTest, ATermDoesNotChangeWhatOthersDraw) {
  Straggler alone = Make("exp=10ms"), both = Make("bimodal=x6,0.5+exp=10ms");
  for (int64_t step = 0; step < 100; ++step) EXPECT_EQ(alone.At(step).added, both.At(step).added);
}

TEST(StragglerTest, AWorkersSpreadIsThatOfAllItsSteps) {
  double sum = 0, squares = 0;
  constexpr int kWorkers = 1000;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    Straggler straggler = Make("spread=0.6", {.seed = 1, .worker = worker, .workers = kWorkers});
    const double factor = straggler.At(0).factor;
    EXPECT_EQ(straggler.At(99).factor, factor);
    sum += factor;
    squares += factor * factor;
  }
  const double mean = sum / kWorkers;
  EXPECT_NEAR(mean, 1, 0.1);
  EXPECT_NEAR(std::sqrt(squares / kWorkers - mean * mean), 0.6, 0.1);
}

TEST(StragglerTest, DrawsHaveTheirMeans) {
  Straggler exponential = Make("exp=10ms"), pareto = Make("pareto=10ms,3"), gamma = Make("gamma=30ms,0.1"),
            bimodal = Make("bimodal=x6,0.125");
  constexpr int kSteps = 20000;
  double exponential_sum = 0, pareto_sum = 0, gamma_sum = 0, slow = 0;
  for (int64_t step = 0; step < kSteps; ++step) {
    exponential_sum += absl::ToDoubleMilliseconds(exponential.At(step).added);
    pareto_sum += absl::ToDoubleMilliseconds(pareto.At(step).added);
    gamma_sum += absl::ToDoubleMilliseconds(gamma.At(step).added);
    slow += bimodal.At(step).factor == 6;
  }
  EXPECT_NEAR(exponential_sum / kSteps, 10, 0.4);
  EXPECT_NEAR(pareto_sum / kSteps, 15, 0.4);
  EXPECT_NEAR(gamma_sum / kSteps, 30, 0.12);
  EXPECT_NEAR(slow / kSteps, 0.125, 0.012);
}

TEST(StragglerTest, AParetoTimeHasALimit) {
  Straggler straggler = Make("pareto=1ms,0.1");
  absl::Duration longest;
  for (int64_t step = 0; step < 100; ++step) longest = std::max(longest, straggler.At(step).added);
  EXPECT_EQ(longest, absl::Seconds(1));
}

TEST(StragglerTest, WorkersBeginATraceAtDifferentLines) {
  StragglerModel model;
  model.trace = {"", std::make_shared<const std::vector<double>>(std::vector<double>{0, 1, 2, 3, 4, 5})};
  Straggler first(model, {.seed = 1, .worker = 0, .workers = 4}), last(model, {.seed = 1, .worker = 3, .workers = 4});
  for (int64_t step = 0; step < 20; ++step) {
    EXPECT_EQ(first.At(step).added, absl::Seconds(step % 6));
    EXPECT_EQ(last.At(step).added, absl::Seconds((step + 4) % 6));
  }
}

// What was published with a seed stays what it was.
TEST(StragglerTest, DrawsWhatItHasDrawnBefore) {
  Straggler straggler = Make(kRandom, {.seed = 1, .worker = 1, .workers = 4});
  EXPECT_NEAR(straggler.At(0).factor, 0.820675378, 1e-6);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(straggler.At(0).added), 56.324567, 1e-3);
  EXPECT_NEAR(straggler.At(1000).factor, 4 * 0.820675378, 1e-6);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(straggler.At(1000).added), 55.880089, 1e-3);
}

}  // namespace
}  // namespace rubato
