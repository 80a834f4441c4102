#include "worker/data/byte_pairs/byte_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Pieces(absl::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    pieces.emplace_back(text.substr(0, PieceLength(text)));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

std::vector<uint32_t> Tokens(const BytePairs& pairs, absl::string_view text) {
  std::vector<uint32_t> tokens;
  pairs.Encode(text, [&](uint32_t token) { tokens.push_back(token); });
  return tokens;
}

// "th", "the", " the", "he"
BytePairs The(bool lower_case = false) {
  absl::StatusOr<BytePairs> pairs = BytePairs::Create(lower_case, {{'t', 'h'}, {256, 'e'}, {' ', 257}, {'h', 'e'}});
  EXPECT_TRUE(pairs.ok()) << pairs.status();
  return *std::move(pairs);
}

TEST(PieceLengthTest, WordsGoWithTheSpaceBeforeThem) {
  EXPECT_THAT(Pieces("In the 1st year, it is."), ElementsAre("In", " the", " 1st", " year", ",", " it", " is", "."));
  EXPECT_THAT(Pieces("a  b\n c\t\td ((e"), ElementsAre("a", " ", " b", "\n", " c", "\t\t", "d", " ((", "e"));
  EXPECT_THAT(Pieces("na\xc3\xafve "), ElementsAre("na\xc3\xafve", " "));
  EXPECT_THAT(Pieces("   "), ElementsAre("   "));
}

TEST(PieceLengthTest, LongRunsAreCut) {
  const std::string run(kMaxPieceBytes, 'a'), spaces(kMaxPieceBytes, ' ');
  EXPECT_THAT(Pieces(run + "b"), ElementsAre(run, "b"));
  EXPECT_THAT(Pieces(" " + run), ElementsAre(" " + run.substr(1), "a"));
  EXPECT_THAT(Pieces(spaces + "b"), ElementsAre(spaces.substr(1), " b"));
}

TEST(BytePairsTest, WhatWasLearnedFirstIsPutTogetherFirst) {
  const BytePairs pairs = The();
  EXPECT_EQ(pairs.size(), 260);
  EXPECT_EQ(pairs.bytes(258), " the");
  EXPECT_THAT(Tokens(pairs, "the the"), ElementsAre(257, 258));
  EXPECT_THAT(Tokens(pairs, "then he"), ElementsAre(257, 'n', ' ', 259));
  // Of "thhe": "th" comes before "he".
  EXPECT_THAT(Tokens(pairs, "thhe"), ElementsAre(256, 259));
  EXPECT_THAT(Tokens(pairs, "THE"), ElementsAre('T', 'H', 'E'));
  EXPECT_THAT(Tokens(The(/*lower_case=*/true), "THE"), ElementsAre(257));
  EXPECT_THAT(Tokens(pairs, ""), ElementsAre());
}

TEST(BytePairsTest, NoPairGoesAcrossTwoPieces) {
  const absl::StatusOr<BytePairs> pairs = BytePairs::Create(false, {{'e', ' '}, {'e', ','}});
  ASSERT_TRUE(pairs.ok());
  EXPECT_THAT(Tokens(*pairs, "e e,"), ElementsAre('e', ' ', 'e', ','));
}

TEST(BytePairsTest, EqualTokensArePutTogetherFromTheLeft) {
  const absl::StatusOr<BytePairs> pairs = BytePairs::Create(false, {{'a', 'a'}, {256, 256}});
  ASSERT_TRUE(pairs.ok());
  EXPECT_THAT(Tokens(*pairs, "aaa"), ElementsAre(256, 'a'));
  EXPECT_THAT(Tokens(*pairs, "aaaaaaa"), ElementsAre(257, 256, 'a'));
}

TEST(BytePairsTest, AreReadAsTheyWereWritten) {
  const std::string text = The(/*lower_case=*/true).Text();
  EXPECT_EQ(text, "rubato byte pairs 1\nlower_case 1\ntokens 260\n116 104 th\n256 101 the\n32 257 _the\n104 101 he\n");
  const absl::StatusOr<BytePairs> read = BytePairs::Load(WriteTestFile("pairs", text));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Text(), text);
  EXPECT_THAT(Tokens(*read, "The"), ElementsAre(257));
}

TEST(BytePairsTest, ABadFileIsRefusedWithItsLine) {
  struct Case {
    std::string text, error;
  };
  const std::string head = "rubato byte pairs 1\nlower_case 0\n";
  const std::vector<Case> cases = {
      {"", R"(:1: ""; expected: "rubato byte pairs 1", as rubato byte-pairs writes it)"},
      {"#version: 0.2\nt h\n\n\n", R"(:1: "#version: 0.2"; expected: "rubato byte pairs 1")"},
      {"rubato byte pairs 1\nlower_case 2\ntokens 256\n",
       R"(:2: "lower_case 2"; expected: lower_case 0, or lower_case 1)"},
      {head + "tokens 255\n", R"(:3: "tokens 255"; expected: tokens 256 to 65536)"},
      {head + "tokens 258\n116 104 th\n", ":3: 258 tokens; expected: 2 lines below, and not 1"},
      {head + "tokens 257\n116 104 th", ":3: 257 tokens; expected: 1 lines below, and not 1"},
      {head + "tokens 257\n116 th\n", R"(:4: "116 th"; expected: two tokens and their text, with a space between)"},
      {head + "tokens 257\n116 257 x\n", ":4: token 256 is of 116 and 257; allowed: 0 to 255"},
      {head + "tokens 258\n116 104 th\n116 104 th\n", ": token 257 is of 116 and 104, as token 256 is; allowed: once"},
  };
  for (const Case& one : cases) {
    const std::string path = WriteTestFile("pairs", one.text);
    const absl::Status status = BytePairs::Load(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.text;
    EXPECT_TRUE(absl::StartsWith(status.message(), path)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.error));
  }
  EXPECT_EQ(BytePairs::Load("no/such/file").status().code(), absl::StatusCode::kNotFound);
}

TEST(BytePairsTest, ATokenIsNoLongerThanAPiece) {
  std::vector<BytePairs::Pair> pairs = {{'a', 'a'}};
  for (uint32_t token = 256; token < 256 + 5; ++token) pairs.push_back({token, token});
  EXPECT_EQ(BytePairs::Create(false, pairs).status().code(), absl::StatusCode::kOk);
  pairs.push_back({261, 'a'});
  EXPECT_EQ(BytePairs::Create(false, pairs).status().message(), "token 262 is of 65 bytes; allowed: at most 64");
}

}  // namespace
}  // namespace rubato::worker
