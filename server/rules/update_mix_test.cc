#include "server/rules/update_mix.h"

#include <gtest/gtest.h>

#include <utility>

#include "server/rules/push_hyperparameters.h"
#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

// A push to the step of a client that says so of the rates of groups 0 and 1; negative: nothing.
Contribution PushWith(uint32_t worker, uint64_t examples, double rate0, double rate1) {
  v1::OptimizerConfig sgd;
  sgd.set_algorithm(v1::OptimizerConfig::SGD);
  PushHyperparameters::Groups groups;
  for (const auto& [group, rate] : {std::pair(0, rate0), std::pair(1, rate1)}) {
    if (rate < 0) continue;
    groups.Add()->set_group(group);
    groups.rbegin()->set_learning_rate(rate);
  }
  PushHeader header = HeaderOf(Worker(worker), 1, 0);
  header.hyperparameters = *PushHyperparameters::Read(groups, {.optimizer = &sgd, .groups = 2});
  return PushOf(std::move(header), examples);
}

TEST(UpdateMixTest, EachCountsByItsExamplesAndAbsentOnesNothing) {
  const ChunkRules::Update update{0, {PushOf(0, 1, 0, 3), PushOf(1, 1, 0, 0), PushOf(2, 1, 0, 1)}};
  const UpdateMix mix = MixContributions(update, {});
  ASSERT_EQ(mix.parts.size(), 2u);
  EXPECT_EQ(mix.parts[0].contribution, &update.contributions[0]);
  EXPECT_EQ(mix.parts[0].weight, 0.75);
  EXPECT_EQ(mix.parts[1].contribution, &update.contributions[2]);
  EXPECT_EQ(mix.parts[1].weight, 0.25);
  EXPECT_EQ(mix.share_with_examples, 2.0 / 3.0);
  EXPECT_EQ(mix.hyperparameters, nullptr);
}

TEST(UpdateMixTest, OfNothingOnlyAMeanIsMade) {
  const ChunkRules::Update update{0, {PushOf(0, 1, 0, 0), PushOf(1, 1, 0, 0)}};
  EXPECT_FALSE(MixContributions(update, {}).has_effect);
  const UpdateMix mean = MixContributions(update, {.is_mean = true});
  EXPECT_TRUE(mean.has_effect);
  EXPECT_TRUE(mean.parts.empty());
}

TEST(UpdateMixTest, TheFirstThatNamesTheGroupDecides) {
  const ChunkRules::Update update{0, {PushWith(0, 0, 0.1, -1), PushWith(1, 4, 0.2, 0.3), PushWith(2, 4, 0.1, 0.3)}};
  const UpdateMix first = MixContributions(update, {.group = 0});
  ASSERT_NE(first.hyperparameters, nullptr);
  EXPECT_EQ(first.hyperparameters->learning_rate(), 0.1);
  EXPECT_EQ(first.share_with_examples, 1) << "a push says the rate itself";
  EXPECT_TRUE(first.disagreement);
  const UpdateMix second = MixContributions(update, {.group = 1});
  ASSERT_NE(second.hyperparameters, nullptr);
  EXPECT_EQ(second.hyperparameters->learning_rate(), 0.3);
  EXPECT_FALSE(second.disagreement);
}

}  // namespace
}  // namespace rubato::server
