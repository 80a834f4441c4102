#include "client/library/table_rows.h"

#include <gtest/gtest.h>

namespace rubato::client {
namespace {

using Keys = std::vector<uint64_t>;
using Floats = std::vector<float>;

class TableRowsTest : public ::testing::Test {
 protected:
  // What the sidecar reads of a body.
  RowsBody Read(const std::string& body, Keys* keys, Floats* values) {
    BodyReader reader(body);
    RowsBody rows;
    EXPECT_TRUE(reader.Get(&rows));
    EXPECT_TRUE(reader.Array(rows.keys, keys));
    EXPECT_TRUE(reader.Array(reader.bytes_left() / sizeof(float), values));
    EXPECT_TRUE(reader.AtEnd());
    EXPECT_EQ(rows.table, 3u);
    return rows;
  }
  // The answer to rubato_begin, as far as it is about the table.
  bool Begin(const Floats& rows, size_t count) {
    BodyWriter writer;
    writer.Put(uint64_t{count}).Array(rows.data(), rows.size());
    BodyReader reader(writer.body());
    return rows_.Begin(&reader) && reader.AtEnd();
  }
  static std::string Answer(const Floats& rows) { return BodyWriter().Array(rows.data(), rows.size()).body(); }

  TableRows rows_{3, "users", 2};
  Keys keys_;
  Floats values_;
};

TEST_F(TableRowsTest, AsksForEachKeyOnce) {
  const Keys asked = {7, 5, 7, UINT64_MAX};
  rows_.Ask(asked.data(), asked.size());
  EXPECT_EQ(rows_.asked(), 3u);
  Read(rows_.asked_body(), &keys_, &values_);
  EXPECT_EQ(keys_, (Keys{7, 5, UINT64_MAX}));
  EXPECT_TRUE(values_.empty());
}

TEST_F(TableRowsTest, RowsThatCameWithTheStepAreNotAskedForAgain) {
  const Keys asked = {7, 5}, read = {5, 9, 7, 5, 9};
  rows_.Ask(asked.data(), asked.size());
  ASSERT_TRUE(Begin({70, 71, 50, 51}, 2));
  EXPECT_EQ(rows_.FindMissing(read.data(), read.size()), 1u);
  Read(rows_.missing_body(), &keys_, &values_);
  EXPECT_EQ(keys_, (Keys{9}));
  Floats out(2 * read.size());
  EXPECT_FALSE(rows_.Copy(read.data(), read.size(), Answer({1}), out.data()));
  ASSERT_TRUE(rows_.Copy(read.data(), read.size(), Answer({90, 91}), out.data()));
  EXPECT_EQ(out, (Floats{50, 51, 90, 91, 70, 71, 50, 51, 90, 91}));
  EXPECT_EQ(rows_.FindMissing(asked.data(), asked.size()), 0u);
  rows_.Forget();
  EXPECT_EQ(rows_.FindMissing(asked.data(), asked.size()), 2u);
}

TEST_F(TableRowsTest, RowsAreOfOneStep) {
  const Keys asked = {7};
  rows_.Ask(asked.data(), asked.size());
  ASSERT_TRUE(Begin({1, 2}, 1));
  ASSERT_TRUE(Begin({}, 0));  // Nothing was asked for, or the job went back.
  EXPECT_EQ(rows_.FindMissing(asked.data(), asked.size()), 1u);
}

TEST_F(TableRowsTest, RefusesAnAnswerOfOtherRows) {
  const Keys asked = {7};
  rows_.Ask(asked.data(), asked.size());
  EXPECT_FALSE(Begin({1, 2, 3, 4}, 2));
  rows_.Ask(asked.data(), asked.size());
  EXPECT_FALSE(Begin({1}, 1));
}

TEST_F(TableRowsTest, AddsUpTheGradientsOfAKey) {
  const Keys pushed = {9, 5, 9, 9};
  const Floats gradients = {1, 2, 10, 20, 3, 4, 0.5, 0.25};
  EXPECT_EQ(rows_.AddUp(pushed.data(), pushed.size(), gradients.data()), 2u);
  const RowsBody body = Read(rows_.pushed_body(64), &keys_, &values_);
  EXPECT_EQ(body.examples, 64u);
  EXPECT_EQ(keys_, (Keys{9, 5}));
  EXPECT_EQ(values_, (Floats{4.5, 6.25, 10, 20}));
  EXPECT_EQ(rows_.AddUp(nullptr, 0, nullptr), 0u);
  Read(rows_.pushed_body(64), &keys_, &values_);
  EXPECT_TRUE(keys_.empty() && values_.empty());
}

}  // namespace
}  // namespace rubato::client
