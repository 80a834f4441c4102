#include "cli/launch/card_turns.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;

// Of the first tasks.
std::vector<std::optional<uint32_t>> Turns(const v1::TrainingConfig& training, uint32_t cards) {
  std::vector<std::optional<uint32_t>> turns;
  for (uint32_t turn = 0; turn < 4; ++turn) turns.push_back(CardInTurn(training, cards, turn));
  return turns;
}

TEST(CardTurnsTest, TasksTakeACardEachInTurn) {
  EXPECT_THAT(Turns({}, 3), ElementsAre(0, 1, 2, 0));
  v1::TrainingConfig training;
  training.set_device(v1::TrainingConfig::CUDA);
  training.set_cards(1);
  EXPECT_THAT(Turns(training, 2), ElementsAre(0, 1, 0, 1));
}

TEST(CardTurnsTest, GroupsOfCardsDoNotOverlap) {
  v1::TrainingConfig training;
  training.set_cards(2);
  EXPECT_THAT(Turns(training, 4), ElementsAre(0, 2, 0, 2));
  EXPECT_THAT(Turns(training, 3), ElementsAre(0, 0, 0, 0));
  training.set_cards(8);
  EXPECT_THAT(Turns(training, 4), ElementsAre(0, 0, 0, 0));
}

TEST(CardTurnsTest, TheConfigHoldsWhereItSaysWhichCard) {
  v1::TrainingConfig training;
  training.set_device_index(0);
  EXPECT_EQ(CardInTurn(training, 4, 1), std::nullopt);
  training.clear_device_index();
  EXPECT_EQ(CardInTurn(training, 4, 1), 1);
  training.set_device(v1::TrainingConfig::CPU);
  EXPECT_EQ(CardInTurn(training, 4, 1), std::nullopt);
}

TEST(CardTurnsTest, ThereIsNothingToShareOutWithoutTwoCards) {
  EXPECT_EQ(CardInTurn({}, 0, 1), std::nullopt);
  EXPECT_EQ(CardInTurn({}, 1, 1), std::nullopt);
}

TEST(CardTurnsTest, SaysHowManyCardsAreMissing) {
  EXPECT_EQ(CardProblem(2, 2), "");
  EXPECT_EQ(CardProblem(0, 0), "");
  EXPECT_EQ(CardProblem(0, 1), "it has no card, and training.device is CUDA");
  EXPECT_EQ(CardProblem(2, 4), "it has 2 of the 4 cards that training.cards takes");
}

}  // namespace
}  // namespace rubato
