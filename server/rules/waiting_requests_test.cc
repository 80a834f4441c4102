#include "server/rules/waiting_requests.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

using Tokens = std::vector<uint64_t>;

class WaitingRequestsTest : public testing::Test {
 protected:
  WaitingRequests::Waiting& Add(uint32_t worker, std::vector<uint32_t> chunks,
                                PartitionRequest::Kind kind = PartitionRequest::Kind::kPull) {
    PartitionRequest request;
    request.token = ++last_token_;
    request.kind = kind;
    request.task = Worker(worker);
    request.chunks = std::move(chunks);
    return waiting_.Add(std::move(request), absl::UnixEpoch());
  }

  WaitingRequests waiting_;
  uint64_t last_token_ = 0;
};

TEST_F(WaitingRequestsTest, AreKnownByTokenAndByWorker) {
  Add(3, {5, 2, 9});
  Add(0, {1});
  Add(3, {7});
  Add(8, {0}, PartitionRequest::Kind::kSnapshot);
  EXPECT_EQ(waiting_.Tokens(), (Tokens{1, 2, 3, 4}));
  EXPECT_EQ(waiting_.Workers(), (std::vector<uint32_t>{0, 3}));
  ASSERT_EQ(waiting_.Of(3).size(), 2u);
  EXPECT_EQ(waiting_.Of(3)[0].lowest_chunk, 2u);
  EXPECT_EQ(waiting_.Of(3)[0].highest_chunk, 9u);
  EXPECT_TRUE(waiting_.Of(7).empty());
  ASSERT_EQ(waiting_.snapshots().size(), 1u);
  EXPECT_EQ(waiting_.snapshots()[0]->to_capture, (std::vector<uint32_t>{0}));
  waiting_.Remove(1);
  waiting_.Remove(4);
  waiting_.Remove(4);
  EXPECT_EQ(waiting_.Tokens(), (Tokens{2, 3}));
  ASSERT_EQ(waiting_.Of(3).size(), 1u);
  EXPECT_EQ(waiting_.Of(3)[0].waiting, waiting_.Find(3));
  EXPECT_EQ(waiting_.Find(1), nullptr);
  EXPECT_TRUE(waiting_.snapshots().empty());
}

TEST_F(WaitingRequestsTest, OneThatWaitsOnAChunkIsTakenOnceAndOneThatWaitsOnAllStays) {
  waiting_.WatchAll(Add(0, {1, 2}));
  waiting_.WatchOne(Add(1, {1, 2}), 2);
  waiting_.WatchOne(Add(2, {1}), 1);
  EXPECT_EQ(waiting_.TakeWatchers({3}), Tokens());
  EXPECT_EQ(waiting_.TakeWatchers({2, 1, 2}), (Tokens{1, 2, 3}));
  EXPECT_EQ(waiting_.TakeWatchers({1, 2}), (Tokens{1}));
  waiting_.WatchOne(*waiting_.Find(3), 1);
  waiting_.Remove(1);
  EXPECT_EQ(waiting_.TakeWatchers({1}), (Tokens{3}));
}

TEST_F(WaitingRequestsTest, WhatIsRemovedOrForgottenWaitsOnNothing) {
  waiting_.WatchOne(Add(0, {1, 2}), 1);
  waiting_.WatchAll(Add(1, {1, 2}));
  waiting_.Remove(1);
  EXPECT_EQ(waiting_.TakeWatchers({1}), (Tokens{2}));
  waiting_.ForgetWatches();
  EXPECT_EQ(waiting_.TakeWatchers({1, 2}), Tokens());
  waiting_.WatchOne(*waiting_.Find(2), 2);
  waiting_.WatchOne(*waiting_.Find(2), 1);
  EXPECT_EQ(waiting_.TakeWatchers({2}), Tokens());
  EXPECT_EQ(waiting_.TakeWatchers({1}), (Tokens{2}));
}

}  // namespace
}  // namespace rubato::server
