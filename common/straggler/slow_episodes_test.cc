#include "common/straggler/slow_episodes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace rubato {
namespace {

constexpr StragglerModel::Markov kModel = {.factor = 4, .probability = 0.02, .shortest = 10, .longest = 200};

std::vector<bool> SlowSteps(const StragglerModel::Markov& model, uint64_t seed, uint32_t worker, int64_t steps) {
  SlowEpisodes episodes(model, seed, worker);
  std::vector<bool> slow;
  for (int64_t step = 0; step < steps; ++step) slow.push_back(episodes.Contain(step));
  return slow;
}

TEST(SlowEpisodesTest, TakeTheShareOfStepsThatTheirLengthsMake) {
  const std::vector<bool> slow = SlowSteps(kModel, 1, 0, 200000);
  double share = 0;
  for (bool step : slow) share += step;
  share /= static_cast<double>(slow.size());
  // 63 steps on average, and 49 between two.
  const double length = (201.0 - 10.0) / std::log(20.1) - 0.5, gap = 1 / 0.02 - 1;
  EXPECT_NEAR(share, length / (length + gap), 0.03);
}

TEST(SlowEpisodesTest, LastAsLongAsTheyMay) {
  // So rare that no two follow each other at once, which would look like one.
  const StragglerModel::Markov model = {.factor = 4, .probability = 0.0001, .shortest = 10, .longest = 20};
  const std::vector<bool> slow = SlowSteps(model, 1, 0, 200000);
  int episodes = 0;
  int64_t length = 0;
  for (bool step : slow) {
    if (step) {
      ++length;
    } else if (length > 0) {
      EXPECT_GE(length, 10);
      EXPECT_LE(length, 20);
      ++episodes;
      length = 0;
    }
  }
  EXPECT_GT(episodes, 5);
  EXPECT_LT(episodes, 50);
}

TEST(SlowEpisodesTest, DoNotDependOnTheOrderOfTheQuestions) {
  const std::vector<bool> slow = SlowSteps(kModel, 1, 3, 5000);
  SlowEpisodes episodes(kModel, 1, 3);
  // Forward with leaps, back as after a rollback, and the same step again.
  for (int64_t step : {4000, 4000, 17, 0, 4999, 2500, 2499, 2500}) {
    EXPECT_EQ(episodes.Contain(step), slow[static_cast<size_t>(step)]) << step;
  }
  for (int64_t step = 4999; step >= 0; step -= 37) {
    EXPECT_EQ(episodes.Contain(step), slow[static_cast<size_t>(step)]) << step;
  }
}

TEST(SlowEpisodesTest, AreOthersForOtherWorkersAndSeeds) {
  const std::vector<bool> slow = SlowSteps(kModel, 1, 0, 5000);
  EXPECT_NE(slow, SlowSteps(kModel, 1, 1, 5000));
  EXPECT_NE(slow, SlowSteps(kModel, 2, 0, 5000));
}

TEST(SlowEpisodesTest, ThatAlwaysBeginNeverEnd) {
  const StragglerModel::Markov model = {.factor = 4, .probability = 1, .shortest = 1, .longest = 1};
  EXPECT_EQ(SlowSteps(model, 1, 0, 100), std::vector<bool>(100, true));
}

}  // namespace
}  // namespace rubato
