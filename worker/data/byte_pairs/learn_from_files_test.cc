#include "worker/data/byte_pairs/learn_from_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/data/byte_pairs/byte_pair_learner.h"
#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

std::string Error(const LearnOptions& options) {
  const absl::Status status = LearnFromFiles(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

// As it would be if the text were learned at once.
std::string Expected(const std::string& text, uint32_t tokens) {
  BytePairLearner learner(/*lower_case=*/false);
  learner.Add(text);
  return learner.Learn(tokens)->Text();
}

TEST(LearnFromFilesTest, ATextOfSeveralBlocksIsOne) {
  std::string text;
  // A block is 1 MiB: words across its end.
  for (int word = 0; text.size() < 3'000'000; ++word) text += word % 7 == 0 ? "in the beginning " : "it was  said, ";
  const auto learned = LearnFromFiles({.paths = {WriteTestFile("text", text)}, .tokens = 300});
  ASSERT_TRUE(learned.ok()) << learned.status();
  EXPECT_EQ(learned->pairs.Text(), Expected(text, 300));
  EXPECT_EQ(learned->bytes, static_cast<int64_t>(text.size()));
  int64_t tokens = 0;
  learned->pairs.Encode(text, [&](uint32_t) { ++tokens; });
  EXPECT_EQ(learned->tokens, tokens);
}

TEST(LearnFromFilesTest, TheEndIsLeftOut) {
  const std::string path = WriteTestFile("text", "ab ab cd cd cd ");
  const auto learned = LearnFromFiles({.paths = {path}, .leave_out = 0.6, .tokens = 300});
  ASSERT_TRUE(learned.ok()) << learned.status();
  EXPECT_EQ(learned->pairs.Text(), Expected("ab ab ", 300));
}

TEST(LearnFromFilesTest, AColumnsFieldsAreTextsOfTheirOwn) {
  const LearnOptions options = {.paths = {WriteTestFile("a.csv", "book,text\n1,\"ab, ab\"\n2,ab\n"),
                                          WriteTestFile("b.csv", "text,book\nab,xyxyxy\n")},
                                .column = "text",
                                .tokens = 300};
  const auto learned = LearnFromFiles(options);
  ASSERT_TRUE(learned.ok()) << learned.status();
  EXPECT_EQ(learned->pairs.size(), 257u);
  EXPECT_EQ(learned->pairs.bytes(256), "ab");
  EXPECT_EQ(learned->bytes, 10);
}

TEST(LearnFromFilesTest, WhatIsNotThereIsNamed) {
  const std::string path = WriteTestFile("a.csv", "book,text\n1,ab\n2\n"), empty = WriteTestFile("empty", "");
  EXPECT_EQ(Error({.paths = {path}, .column = "title"}),
            path + ":1: no column \"title\"; there are: \"book\", \"text\"");
  EXPECT_EQ(Error({.paths = {path}, .column = "text"}), path + ":3: 1 columns; expected: more than 1");
  EXPECT_EQ(Error({.paths = {empty}}), empty + ": there is no text");
  EXPECT_EQ(LearnFromFiles({.paths = {"no/such/file"}}).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace rubato::worker
