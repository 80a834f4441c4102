#include "worker/data/separated_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rubato::worker {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Split(absl::string_view record, char separator = ',') {
  SeparatedFields fields(separator);
  const absl::Status status = fields.Split(record);
  EXPECT_TRUE(status.ok()) << status;
  return {fields.fields().begin(), fields.fields().end()};
}

std::string Error(absl::string_view record) {
  SeparatedFields fields(',');
  const absl::Status status = fields.Split(record);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(SeparatedFieldsTest, SplitsAtSeparators) {
  EXPECT_THAT(Split("a,b c,3"), ElementsAre("a", "b c", "3"));
  EXPECT_THAT(Split(",,"), ElementsAre("", "", ""));
  EXPECT_THAT(Split("a"), ElementsAre("a"));
  EXPECT_THAT(Split(""), ElementsAre(""));
  EXPECT_THAT(Split("a,b\tc,d", '\t'), ElementsAre("a,b", "c,d"));
}

TEST(SeparatedFieldsTest, QuotesKeepSeparatorsLineEndsAndQuotes) {
  EXPECT_THAT(Split("\"a,b\",\"c\nd\",\"\"\"e\"\" f\""), ElementsAre("a,b", "c\nd", "\"e\" f"));
  EXPECT_THAT(Split("\"\",x,\"\"\"\""), ElementsAre("", "x", "\""));
}

TEST(SeparatedFieldsTest, FieldsOfAnotherRecordTakeTheirPlace) {
  SeparatedFields fields(',');
  ASSERT_TRUE(fields.Split("\"1\",2").ok());
  ASSERT_TRUE(fields.Split("\"3\"").ok());
  EXPECT_THAT(fields.fields(), ElementsAre("3"));
}

TEST(SeparatedFieldsTest, NamesTheColumnWithBadQuotes) {
  const std::string allowed = "; allowed: text without quotes, or between two of them and with each inside twice";
  EXPECT_EQ(Error("a,b\"c"), "column 1: value \"b\\\"c\"" + allowed);
  EXPECT_EQ(Error("\"a\"b,c"), "column 0: value \"\\\"a\\\"b,c\"" + allowed);
  EXPECT_EQ(Error("a,\"b"), "column 1: value \"\\\"b\"" + allowed);
  EXPECT_EQ(Error("\""), "column 0: value \"\\\"\"" + allowed);
}

TEST(SeparatedFieldsTest, ColumnsAreFoundByTheirNames) {
  SeparatedFields header(',');
  ASSERT_TRUE(header.SplitHeader("\xef\xbb\xbflate,\"from, to\",miles,late").ok());
  EXPECT_EQ(FindColumn(header.fields(), "miles").value(), 2u);
  EXPECT_EQ(FindColumn(header.fields(), "from, to").value(), 1u);
  EXPECT_EQ(FindColumn(header.fields(), "late").status().message(), "two columns \"late\"; expected: one");
  EXPECT_EQ(FindColumn(header.fields(), "age").status().message(),
            "no column \"age\"; there are: \"late\", \"from, to\", \"miles\", \"late\"");
}

TEST(SeparatedRecordLengthTest, ARecordEndsAtALineFeedOutsideOfQuotes) {
  constexpr size_t kNone = absl::string_view::npos;
  EXPECT_EQ(SeparatedRecordLength("a,b\nc", ','), 3u);
  EXPECT_EQ(SeparatedRecordLength("a,b", ','), kNone);
  EXPECT_EQ(SeparatedRecordLength("\n", ','), 0u);
  EXPECT_EQ(SeparatedRecordLength("\"a\nb\",c\nd", ','), 7u);
  EXPECT_EQ(SeparatedRecordLength("a,\"\"\"\nb\"\nc", ','), 8u);
  EXPECT_EQ(SeparatedRecordLength("\"a\nb", ','), kNone);
  EXPECT_EQ(SeparatedRecordLength("a;\"\n\";\n", ';'), 6u);
}

TEST(SeparatedRecordLengthTest, AQuoteInsideOfAFieldIsNoQuote) {
  EXPECT_EQ(SeparatedRecordLength("5\" wide,x\ny", ','), 9u);
  EXPECT_EQ(SeparatedRecordLength("\"a\"b\"\nc", ','), 5u);
}

}  // namespace
}  // namespace rubato::worker
