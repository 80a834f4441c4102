#include "common/codec_traits.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace rubato {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> Cells(absl::string_view line) {
  absl::ConsumePrefix(&line, "|");
  absl::ConsumeSuffix(&line, "|");
  std::vector<std::string> cells;
  for (absl::string_view cell : absl::StrSplit(line, '|')) cells.emplace_back(absl::StripAsciiWhitespace(cell));
  return cells;
}

// The rows of the table that begins with "| codec", by the names of its columns.
std::vector<Row> DocumentedCodecs() {
  std::ifstream file("docs/formats.md");
  std::vector<std::string> columns;
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (columns.empty()) {
      if (line.rfind("| codec |", 0) == 0) columns = Cells(line);
      continue;
    }
    if (line.empty()) break;
    if (line.rfind("|---", 0) == 0) continue;
    const std::vector<std::string> cells = Cells(line);
    Row& row = rows.emplace_back();
    for (size_t i = 0; i < columns.size() && i < cells.size(); ++i) row[columns[i]] = cells[i];
  }
  return rows;
}

const char* YesNo(bool yes) { return yes ? "yes" : "no"; }

TEST(CodecTraitsTest, FormatsMdHasTheSameTable) {
  const std::vector<v1::Codec> codecs = AllCodecs();
  std::vector<Row> rows = DocumentedCodecs();
  ASSERT_EQ(rows.size(), codecs.size());
  for (size_t i = 0; i < codecs.size(); ++i) {
    const CodecTraits& traits = TraitsOf(codecs[i]);
    Row& row = rows[i];
    SCOPED_TRACE(v1::Codec_Name(codecs[i]));
    EXPECT_EQ(row["codec"], v1::Codec_Name(codecs[i]));
    EXPECT_EQ(row["of 1000 elements"], absl::StrCat(traits.bytes(traits.default_fraction, 1000)));
    EXPECT_EQ(row["lossy"], YesNo(traits.lossy));
    EXPECT_EQ(row["residual"], YesNo(traits.has_residual));
    EXPECT_EQ(row["on a pull"], YesNo(traits.valid_on_pull));
    EXPECT_EQ(row["default fraction"], traits.takes_fraction() ? absl::StrCat(traits.default_fraction) : "-");
    EXPECT_EQ(row["on a GPU"], YesNo(traits.gpu != GpuEncoder::kNone));
    EXPECT_FALSE(row["contents"].empty());
  }
}

TEST(CodecTraitsTest, EveryCodecHasARowOfItsOwn) {
  // That of NONE is what a codec without one would have.
  for (v1::Codec codec : AllCodecs()) {
    EXPECT_EQ(&TraitsOf(codec) == &TraitsOf(v1::NONE), codec == v1::NONE) << v1::Codec_Name(codec);
    EXPECT_NE(TraitsOf(codec).bytes, nullptr) << v1::Codec_Name(codec);
  }
}

TEST(CodecTraitsTest, WhatIsNoCodecIsPlainFloats) {
  for (int number : {0, 99, -1}) EXPECT_EQ(&TraitsOf(static_cast<v1::Codec>(number)), &TraitsOf(v1::NONE)) << number;
}

TEST(CodecTraitsTest, WhatLosesMuchCarriesNoWeights) {
  for (v1::Codec codec : AllCodecs()) {
    const CodecTraits& traits = TraitsOf(codec);
    EXPECT_FALSE(traits.has_residual && traits.valid_on_pull) << v1::Codec_Name(codec);
    EXPECT_TRUE(!traits.takes_fraction() || IsCodecFraction(traits.default_fraction)) << v1::Codec_Name(codec);
  }
}

TEST(CodecTraitsTest, NamesAreThoseOfTheEnum) {
  EXPECT_EQ(CodecNames([](const CodecTraits& traits) { return traits.has_residual; }), "TOP_K, ONE_BIT");
  EXPECT_EQ(CodecNames([](const CodecTraits& traits) { return !traits.valid_on_pull; }, " and "), "TOP_K and ONE_BIT");
}

TEST(CodecTraitsTest, TopKCountsAreRoundedUp) {
  EXPECT_EQ(TopKCount(0.01, 0), 0);
  EXPECT_EQ(TopKCount(1e-9, 5), 1);
  EXPECT_EQ(TopKCount(0.01, 101), 2);
  EXPECT_EQ(TopKCount(1, 5), 5);
}

}  // namespace
}  // namespace rubato
