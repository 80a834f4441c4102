#include "server/spare_buffers.h"

#include <gtest/gtest.h>

#include <vector>

namespace rubato::server {
namespace {

FloatBuffer::Ptr Make() { return FloatBuffer::Allocate(1); }

TEST(SpareBuffersTest, GivesNoneThatSomebodyReads) {
  SpareBuffers spares;
  const FloatBuffer::Ptr first = Make(), second = Make();
  EXPECT_EQ(spares.Exchange(first), nullptr);
  EXPECT_EQ(spares.Exchange(second), nullptr);
  EXPECT_EQ(spares.size(), 2u);
}

TEST(SpareBuffersTest, GivesOneThatNobodyReadsAnyMore) {
  SpareBuffers spares;
  FloatBuffer::Ptr first = Make();
  const FloatBuffer::Ptr second = Make();
  const FloatBuffer* const expected = first.get();
  spares.Add(first);
  first = nullptr;
  EXPECT_EQ(spares.Exchange(second).get(), expected);
  EXPECT_EQ(spares.Exchange(Make()), nullptr) << "second is read";
  EXPECT_EQ(spares.size(), 2u);
}

class SpareBuffersOfMany : public testing::Test {
 protected:
  // In the order in which they come.
  SpareBuffersOfMany() {
    for (FloatBuffer::Ptr& each : readers_) {
      each = Make();
      spares_.Add(each);
    }
  }

  // This one is read no longer, and is given for another that is read from then on.
  void ExpectGiven(int free) {
    const FloatBuffer* const expected = readers_[free].get();
    readers_[free] = nullptr;
    EXPECT_EQ(spares_.Exchange(readers_.emplace_back(Make())).get(), expected);
  }

  SpareBuffers spares_;
  std::vector<FloatBuffer::Ptr> readers_{7};
};

TEST_F(SpareBuffersOfMany, FindsTheOneThatIsFreeWhereverItIs) {
  for (int free : {3, 0, 6, 1, 5, 2, 4}) ExpectGiven(free);
  for (int free : {9, 12, 7, 13, 8, 11, 10}) ExpectGiven(free);
  EXPECT_EQ(spares_.size(), 7u);
  EXPECT_EQ(spares_.Exchange(Make()), nullptr);
  EXPECT_EQ(spares_.size(), 8u);
}

TEST_F(SpareBuffersOfMany, LooksAtTheYoungestAndThenAtTheOldest) {
  const FloatBuffer* const expected[] = {readers_[6].get(), readers_[0].get(), readers_[1].get()};
  readers_.clear();
  for (const FloatBuffer* each : expected) {
    const FloatBuffer::Ptr given = spares_.Exchange(readers_.emplace_back(Make()));
    EXPECT_EQ(given.get(), each) << "what came in its place is the youngest, and is read";
  }
}

}  // namespace
}  // namespace rubato::server
