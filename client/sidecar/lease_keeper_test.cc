#include "client/sidecar/lease_keeper.h"

#include <gtest/gtest.h>

namespace rubato::client {
namespace {

class LeaseKeeperTest : public ::testing::Test {
 protected:
  // Answers the last request.
  void Answer(v1::ShardGrant::Result result, uint64_t shard = 0) {
    v1::ShardGrant grant;
    grant.set_request_id(request_.request_id());
    grant.set_result(result);
    grant.set_shard(shard);
    grant.set_begin(static_cast<int64_t>(shard) * 10);
    grant.set_end(static_cast<int64_t>(shard) * 10 + 10);
    leases_.OnGrant(grant, now_);
  }
  bool Sends() {
    const std::optional<v1::ShardRequest> due = leases_.Due(now_);
    if (due.has_value()) request_ = *due;
    return due.has_value();
  }
  void Lease(uint64_t shard) {
    leases_.Want();
    ASSERT_TRUE(Sends());
    Answer(v1::ShardGrant::GRANTED, shard);
    ASSERT_EQ(leases_.Take()->shard, shard);
  }

  LeaseKeeper leases_;
  v1::ShardRequest request_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(LeaseKeeperTest, AsksWhenTheClientWaitsAndRepeatsWhatIsNotAnswered) {
  EXPECT_FALSE(Sends());
  leases_.Want();
  EXPECT_TRUE(Sends());
  EXPECT_EQ(request_.request_id(), 1u);
  EXPECT_FALSE(Sends());
  now_ += absl::Seconds(1);
  EXPECT_TRUE(Sends());
  EXPECT_EQ(request_.request_id(), 1u);
  Answer(v1::ShardGrant::GRANTED, 5);
  const std::optional<LeaseBody> lease = leases_.Take();
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(lease->begin, 50);
  EXPECT_EQ(lease->end, 60);
  EXPECT_FALSE(leases_.wanted());
  EXPECT_FALSE(leases_.Take().has_value());
}

TEST_F(LeaseKeeperTest, AsksAgainALittleAfterNoneWasLeft) {
  leases_.Want();
  EXPECT_TRUE(Sends());
  Answer(v1::ShardGrant::NONE_NOW);
  EXPECT_FALSE(Sends());
  now_ += absl::Milliseconds(20);
  EXPECT_TRUE(Sends());
  EXPECT_EQ(request_.request_id(), 2u);
}

TEST_F(LeaseKeeperTest, ReportsAShardWhenItsLastSliceIsAcknowledged) {
  Lease(5);
  leases_.SetSlice({.shard = 5, .begin = 50, .end = 58});
  EXPECT_FALSE(leases_.Acknowledged());
  EXPECT_FALSE(Sends());
  ASSERT_EQ(leases_.Positions().size(), 1u);
  EXPECT_EQ(leases_.Positions()[0].next(), 58);
  leases_.SetSlice({.shard = 5, .begin = 58, .end = 60});
  EXPECT_FALSE(Sends());
  EXPECT_EQ(leases_.Positions()[0].next(), 58);
  EXPECT_TRUE(leases_.Acknowledged());
  ASSERT_TRUE(Sends());
  ASSERT_EQ(request_.finished_shards_size(), 1);
  EXPECT_EQ(request_.finished_shards(0), 5u);
  // The answer to a report may be a shard, which is the client's when it asks.
  Answer(v1::ShardGrant::GRANTED, 6);
  ASSERT_EQ(leases_.Positions().size(), 1u);
  EXPECT_EQ(leases_.Positions()[0].shard(), 6u);
  leases_.Want();
  EXPECT_FALSE(Sends());
  EXPECT_EQ(leases_.Take()->shard, 6u);
}

TEST_F(LeaseKeeperTest, IsDoneWhenTheCoordinatorSaysSo) {
  leases_.Want();
  EXPECT_TRUE(Sends());
  EXPECT_FALSE(leases_.done());
  Answer(v1::ShardGrant::DONE);
  EXPECT_TRUE(leases_.done());
  now_ += absl::Seconds(10);
  EXPECT_FALSE(Sends());
}

TEST_F(LeaseKeeperTest, AnswersToOldRequestsChangeNothing) {
  leases_.Want();
  EXPECT_TRUE(Sends());
  Answer(v1::ShardGrant::NONE_NOW);
  Answer(v1::ShardGrant::GRANTED, 5);
  EXPECT_FALSE(leases_.Take().has_value());
}

TEST_F(LeaseKeeperTest, TheLastReportDoesNotWaitForAnAnswer) {
  Lease(5);
  leases_.SetSlice({.shard = 5, .begin = 50, .end = 60});
  leases_.Want();
  EXPECT_TRUE(Sends());
  const std::optional<v1::ShardRequest> last = leases_.Stopped(now_);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->request_id(), 3u);
  EXPECT_EQ(last->finished_shards(0), 5u);
}

}  // namespace
}  // namespace rubato::client
