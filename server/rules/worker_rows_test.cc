#include "server/rules/worker_rows.h"

#include <gtest/gtest.h>

#include <memory>

namespace rubato::server {
namespace {

TEST(WorkerRowsTest, KnowsNothingOfWorkersThatWereNotAskedFor) {
  WorkerRows<int> rows(2);
  EXPECT_EQ(rows.Find(0, 0), nullptr);
  rows.Of(3, 1) = 5;
  EXPECT_EQ(rows.Find(2, 1), nullptr);
  EXPECT_EQ(rows.Find(4, 1), nullptr);
  EXPECT_TRUE(rows.Row(2).empty());
  ASSERT_EQ(rows.Row(3).size(), 2u);
  EXPECT_EQ(rows.Row(3)[0], 0);
  EXPECT_EQ(rows.Row(3)[1], 5);
  EXPECT_EQ(rows.end(), 4u);
}

TEST(WorkerRowsTest, WhatIsKnownOfAWorkerLiesSideBySideAndStaysThere) {
  WorkerRows<int> rows(3);
  int* const first = &rows.Of(1, 0);
  for (uint32_t worker : {100u, 0u, 7u}) rows.Of(worker, 2) = 1;
  EXPECT_EQ(rows.Find(1, 0), first);
  EXPECT_EQ(rows.Find(1, 2), first + 2);
}

TEST(WorkerRowsTest, ColumnsOfTheSameRowsAreApart) {
  const auto rows = std::make_shared<WorkerRows<int>>(2);
  ChunkColumn<int> a(rows, 0);
  ChunkColumn<int> b(rows, 1);
  a.Of(4) = 1;
  b.Of(4) = 2;
  EXPECT_EQ(*a.Find(4), 1);
  EXPECT_EQ(*b.Find(4), 2);
  EXPECT_EQ(a.Find(5), nullptr);
  EXPECT_EQ(b.end(), 5u);
}

TEST(WorkerRowsTest, AColumnOfItsOwnNeedsNoRows) {
  ChunkColumn<int> column;
  column.Of(2) = 3;
  EXPECT_EQ(*column.Find(2), 3);
}

}  // namespace
}  // namespace rubato::server
