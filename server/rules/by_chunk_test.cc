#include "server/rules/by_chunk.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace rubato::server {
namespace {

TEST(ByChunkTest, FindsWhatWasAddedAndNothingElse) {
  ByChunk<std::string> names;
  EXPECT_EQ(names.Find(0), nullptr);
  names.Add(7, "seven");
  names.Add(2, "two");
  ASSERT_NE(names.Find(7), nullptr);
  EXPECT_EQ(*names.Find(7), "seven");
  EXPECT_EQ(names.at(2), "two");
  for (const uint32_t absent : {0, 3, 8, 1'000'000}) {
    EXPECT_EQ(names.Find(absent), nullptr) << absent;
    EXPECT_THROW(names.at(absent), std::out_of_range) << absent;
  }
}

TEST(ByChunkTest, ItemsMayBeOnlyMovedAndStandInTheOrderInWhichTheyCame) {
  ByChunk<std::unique_ptr<int>> items;
  for (int i = 0; i < 100; ++i) items.Add(200 - 2 * i, std::make_unique<int>(i));
  *items.at(200) = -1;
  std::vector<int> values;
  for (const std::unique_ptr<int>& item : items) values.push_back(*item);
  ASSERT_EQ(values.size(), 100u);
  EXPECT_EQ(values.front(), -1);
  EXPECT_EQ(values.back(), 99);
}

}  // namespace
}  // namespace rubato::server
