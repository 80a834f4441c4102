#include "common/key_places.h"

#include <gtest/gtest.h>

#include <string>

namespace rubato {
namespace {

TableSpec Table(const std::string& name, int64_t keys, bool is_bag) {
  TableSpec table;
  table.config.set_name(name);
  table.config.set_keys_per_example(keys);
  if (is_bag) table.config.set_combine(v1::TableConfig::MEAN);
  return table;
}

// One letter for each entry: 'w' of words, '.' of another.
v1::ColumnsData Entries(const std::string& entries) {
  v1::ColumnsData columns;
  for (const char entry : entries) columns.add_keys()->set_words(entry == 'w');
  return columns;
}

std::string Error(const std::string& entries, const std::vector<TableSpec>& tables) {
  const absl::StatusOr<std::vector<KeyPlace>> places = PlacesOfKeys(Entries(entries), tables);
  return std::string(places.status().message());
}

TEST(KeyPlacesTest, EntriesFollowTheTables) {
  const auto places = PlacesOfKeys(
      Entries("..w.."), {Table("a", 1, false), Table("b", 1, true), Table("c", 40, true), Table("d", 2, true)});
  ASSERT_TRUE(places.ok()) << places.status();
  ASSERT_EQ(places->size(), 5u);
  const int64_t firsts[] = {0, 1, 2, 42, 43};
  const size_t tables[] = {0, 1, 2, 3, 3};
  for (int i = 0; i < 5; ++i) {
    const KeyPlace& place = (*places)[i];
    EXPECT_EQ(place.entry, i);
    EXPECT_EQ(place.first, firsts[i]) << i;
    EXPECT_EQ(place.table, tables[i]) << i;
    EXPECT_EQ(place.places, i == 2 ? 40 : 1) << i;
  }
}

TEST(KeyPlacesTest, WithoutTablesThereAreNone) { EXPECT_TRUE(PlacesOfKeys(Entries(""), {})->empty()); }

TEST(KeyPlacesTest, EntriesAreAsManyAsTheTablesTake) {
  EXPECT_EQ(Error("..", {Table("a", 3, false)}),
            "data.columns.keys: value 2 entries; allowed: 3, as the model's tables have keys");
  EXPECT_EQ(Error("w.", {Table("a", 3, true)}),
            "data.columns.keys: value 2 entries; allowed: 1, as the model's tables have keys");
  EXPECT_EQ(Error(".", {}), "data.columns.keys: value 1 entries; allowed: 0, as the model's tables have keys");
}

TEST(KeyPlacesTest, WordsHaveATableWithCombineToThemselves) {
  EXPECT_EQ(Error(".w", {Table("a", 2, true)}),
            "data.columns.keys[1].words: value true; allowed: false, as the entry is one of the 2 of table a; an entry "
            "of words is the only one of a table with combine");
  EXPECT_EQ(Error("w", {Table("a", 2, false)}),
            "data.columns.keys[0].words: value true; allowed: false, as the entry is one of the 2 of table a; an entry "
            "of words is the only one of a table with combine");
}

}  // namespace
}  // namespace rubato
