#include "worker/data/column_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;

uint64_t Key(int entry, const std::vector<std::string>& values) {
  ColumnKey key(entry);
  for (const std::string& value : values) key.Add(value);
  return key.Finish();
}

uint64_t BucketKey(int entry, int64_t bucket) {
  ColumnKey key(entry);
  key.AddBucket(bucket);
  return key.Finish();
}

std::vector<std::string> Words(absl::string_view text) {
  std::vector<std::string> words;
  ForEachWord(text, [&](absl::string_view word) { words.emplace_back(word); });
  return words;
}

// docs/formats.md has the formula; these numbers are from another implementation of it.
TEST(ColumnKeyTest, IsTheDocumentedHash) {
  EXPECT_EQ(Key(0, {"LAS"}), 0xb93ddaa9158ebe85u);
  EXPECT_EQ(Key(3, {"LAS", "PHL"}), 0xa39420e9f0798a2eu);
  EXPECT_EQ(Key(1, {""}), 0x15bf9278ef24affeu);
  EXPECT_EQ(BucketKey(2, -1), 0xc73f2160b210d468u);
}

TEST(ColumnKeyTest, TellsEntriesAndValuesOfCrossesApart) {
  const std::set<uint64_t> keys = {Key(0, {"ab", "c"}), Key(0, {"a", "bc"}), Key(0, {"abc"}),
                                   Key(0, {"abc", ""}), Key(0, {"", "abc"}), Key(1, {"abc"}),
                                   BucketKey(0, 0),     BucketKey(0, 1),     Key(0, {""})};
  EXPECT_EQ(keys.size(), 9u);
}

TEST(BucketOfTest, BucketsBeginAtMultiplesOfTheirWidth) {
  EXPECT_EQ(BucketOf("0", 60), 0);
  EXPECT_EQ(BucketOf("59.9", 60), 0);
  EXPECT_EQ(BucketOf("60", 60), 1);
  EXPECT_EQ(BucketOf("-0.0", 60), 0);
  EXPECT_EQ(BucketOf("-1", 60), -1);
  EXPECT_EQ(BucketOf("0.25", 0.125), 2);
  EXPECT_EQ(BucketOf("9223372036854774784", 1), 9223372036854774784);
}

TEST(BucketOfTest, IsNothingWithoutANumber) {
  for (const char* field : {"", "x", "1 2", "nan", "inf", "-inf", "1e300"}) {
    EXPECT_EQ(BucketOf(field, 0.5), std::nullopt) << field;
  }
}

TEST(ForEachWordTest, WordsAreRunsOfLettersAndDigitsInLowerCase) {
  EXPECT_THAT(Words("In the BEGINNING, God's 7 days."), ElementsAre("in", "the", "beginning", "god", "s", "7", "days"));
  EXPECT_THAT(Words("caf\xc3\xa9!"), ElementsAre("caf\xc3\xa9"));
  EXPECT_THAT(Words("a"), ElementsAre("a"));
  EXPECT_THAT(Words(" ... "), ElementsAre());
  EXPECT_THAT(Words(""), ElementsAre());
}

}  // namespace
}  // namespace rubato::worker
