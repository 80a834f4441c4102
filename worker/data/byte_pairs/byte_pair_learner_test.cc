#include "worker/data/byte_pairs/byte_pair_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Learned(const std::vector<std::string>& texts, uint32_t tokens, bool lower_case = false) {
  BytePairLearner learner(lower_case);
  for (const std::string& text : texts) learner.Add(text);
  const absl::StatusOr<BytePairs> pairs = learner.Learn(tokens);
  EXPECT_TRUE(pairs.ok()) << pairs.status();
  std::vector<std::string> learned;
  for (uint32_t token = BytePairs::kBytes; pairs.ok() && token < pairs->size(); ++token) {
    learned.push_back(pairs->bytes(token));
  }
  return learned;
}

// As it is defined: all is counted again for each token.
std::vector<std::string> LearnedSlowly(const std::string& text, size_t tokens) {
  std::vector<std::vector<std::string>> pieces;
  for (absl::string_view rest = text; !rest.empty();) {
    std::vector<std::string>& piece = pieces.emplace_back();
    for (const char byte : rest.substr(0, PieceLength(rest))) piece.emplace_back(1, byte);
    rest.remove_prefix(piece.size());
  }
  std::vector<std::string> learned;
  std::map<std::string, size_t> numbers;
  for (size_t byte = 0; byte < 256; ++byte) numbers[std::string(1, static_cast<char>(byte))] = byte;
  while (learned.size() < tokens) {
    std::map<std::pair<size_t, size_t>, int64_t> counts;
    for (const auto& piece : pieces) {
      for (size_t i = 0; i + 1 < piece.size(); ++i) ++counts[{numbers.at(piece[i]), numbers.at(piece[i + 1])}];
    }
    std::pair<size_t, size_t> best;
    int64_t most = 1;
    for (const auto& [pair, count] : counts) {
      if (count > most) std::tie(best, most) = std::tie(pair, count);
    }
    if (most < 2) break;
    std::string token;
    for (auto& piece : pieces) {
      for (size_t i = 0; i + 1 < piece.size(); ++i) {
        if (numbers.at(piece[i]) != best.first || numbers.at(piece[i + 1]) != best.second) continue;
        piece[i] += piece[i + 1];
        token = piece[i];
        piece.erase(piece.begin() + static_cast<ptrdiff_t>(i) + 1);
      }
    }
    // Two tokens of the same text would need numbers in the pieces.
    if (!numbers.emplace(token, 256 + learned.size()).second) ADD_FAILURE() << "use another text";
    learned.push_back(token);
  }
  return learned;
}

TEST(BytePairLearnerTest, PutsTheMostFrequentPairTogether) {
  // "ab" four times, then " ab" three times, as "abc" is, of which it leaves one; " abc" twice.
  EXPECT_THAT(Learned({"abc abc abc abd"}, 300), ElementsAre("ab", " ab", " abc"));
  EXPECT_THAT(Learned({"abc abc abc abd"}, 257), ElementsAre("ab"));
  EXPECT_THAT(Learned({"abc abc abc abd"}, 256), ElementsAre());
}

TEST(BytePairLearnerTest, OfEqualCountsTheLowestNumbersAreNext) {
  EXPECT_THAT(Learned({"cd,ab.cd,ab"}, 258), ElementsAre("ab", "cd"));
}

TEST(BytePairLearnerTest, TextsHaveEndsOfTheirOwn) {
  EXPECT_THAT(Learned({"ab", "ab"}, 300), ElementsAre("ab"));
  EXPECT_THAT(Learned({"a", "b", "a", "b"}, 300), ElementsAre());
  EXPECT_THAT(Learned({"AB", "ab"}, 300, /*lower_case=*/true), ElementsAre("ab"));
}

TEST(BytePairLearnerTest, CountsAreThoseOfTheDefinition) {
  Random random(7);
  for (int round = 0; round < 20; ++round) {
    std::string text;
    const uint64_t letters = 2 + random.Below(4);
    for (int i = 0; i < 400; ++i) {
      text += random.Below(6) == 0 ? ' ' : static_cast<char>('a' + random.Below(letters));
    }
    EXPECT_EQ(Learned({text}, 256 + 25), LearnedSlowly(text, 25)) << text;
  }
}

}  // namespace
}  // namespace rubato::worker
