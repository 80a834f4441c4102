#include "server/weight_leases.h"

#include <gtest/gtest.h>

#include <set>

#include "common/float_buffer.h"

namespace rubato::server {
namespace {

class WeightLeasesTest : public testing::Test {
 protected:
  // Whether nobody but the test holds the buffer.
  static bool IsFree(const FloatBuffer::Ptr& buffer) { return buffer.use_count() == 1; }

  std::set<uint64_t> living_ = {7, 8};
  WeightLeases leases_{[this](uint64_t session, const v1::TaskId&) { return living_.contains(session); }};
  FloatBuffer::Ptr buffer_ = FloatBuffer::Allocate(4);
};

TEST_F(WeightLeasesTest, HoldsABufferUntilItsChunkIsAskedForAgain) {
  leases_.TakeBack(7, {}, {1, 2});
  leases_.Lend(7, 1, buffer_);
  leases_.TakeBack(7, {}, {2});
  leases_.TakeBack(8, {}, {1});
  EXPECT_FALSE(IsFree(buffer_));
  leases_.TakeBack(7, {}, {1});
  EXPECT_TRUE(IsFree(buffer_));
}

TEST_F(WeightLeasesTest, HoldsTheNewestBufferOfAChunk) {
  leases_.TakeBack(7, {}, {1});
  leases_.Lend(7, 1, buffer_);
  leases_.Lend(7, 1, FloatBuffer::Allocate(4));
  EXPECT_TRUE(IsFree(buffer_));
}

TEST_F(WeightLeasesTest, HoldsABufferAsLongAsTheSessionOfItsReaderLives) {
  leases_.TakeBack(7, {}, {1});
  leases_.Lend(7, 1, buffer_);
  living_ = {7};
  leases_.DropDead();
  EXPECT_FALSE(IsFree(buffer_));
  living_ = {8};
  leases_.DropDead();
  EXPECT_TRUE(IsFree(buffer_));
}

}  // namespace
}  // namespace rubato::server
