#include "server/server_core.h"

#include <gtest/gtest.h>

#include <memory>

#include "server/rules/testing/builders.h"
#include "server/testing/server_core_harness.h"

namespace rubato::server {
namespace {

using Reply = v1::ExchangeReply;

// In SYNC.
class ServerCoreTest : public ServerCoreHarness {
 protected:
  ServerCoreTest() {
    MakeCore();
    EXPECT_TRUE(core_->StartJob(job_).ok());
    Commit(MakePlan(1, v1::SYNC, 0, {0, 1}));
  }
};

TEST_F(ServerCoreTest, ForgetsWhatWaitsOnAStreamThatClosesAndKeepsItsPushes) {
  const auto lost = std::make_shared<FakeConnection>(1), kept = std::make_shared<FakeConnection>(2),
             other = std::make_shared<FakeConnection>(3), again = std::make_shared<FakeConnection>(4);
  Pull(lost, 0, 0, 0);
  Pull(kept, 0, 1, 0);
  Pull(other, 1, 0, 0);
  Pull(other, 1, 1, 0);
  other->Await(2);
  // Both wait for worker 1: one on a stream that will break, one on another stream of the same worker.
  Push(lost, 0, 0, 0);
  Push(kept, 0, 1, 0);
  lost->Await(1);
  kept->Await(1);
  EXPECT_EQ(Progress().held_size(), 1);  // Step 1 of worker 0, however many messages wait for it.

  core_->OnClosed(lost->id());
  core_->OnClosed(kept->id() + 100);  // Never seen.
  Push(other, 1, 0, 0);
  EXPECT_EQ(other->Await(3).outcome(), Reply::OK);
  Settle();
  EXPECT_EQ(lost->count(), 1u);
  EXPECT_EQ(kept->count(), 1u);
  // Worker 0 has not begun step 1 of chunk 0: nobody was told its weights.
  Push(other, 1, 1, 0);
  EXPECT_EQ(other->Await(4).outcome(), Reply::OK);
  EXPECT_EQ(kept->Await(2).outcome(), Reply::OK);
  EXPECT_EQ(Progress().updates_total(), 2);

  // The worker connects again, and asks again.
  Push(again, 0, 0, 0);
  const Reply answer = again->Await(1);
  EXPECT_EQ(answer.outcome(), Reply::OK);
  EXPECT_EQ(answer.push(), Reply::PUSH_DUPLICATE);
  EXPECT_EQ(Progress().updates_total(), 2);
  EXPECT_EQ(lost->count(), 1u);
}

TEST_F(ServerCoreTest, AStepThatEveryPartitionHoldsIsOneLineOfStatus) {
  const auto stream = std::make_shared<FakeConnection>(1);
  for (uint32_t chunk = 0; chunk < 3; ++chunk) Pull(stream, 0, chunk, 0);
  stream->Await(3);
  for (uint32_t chunk = 0; chunk < 3; ++chunk) Push(stream, 0, chunk, 0);
  const v1::ServerProgress progress = Progress();
  ASSERT_EQ(progress.held_size(), 1);
  EXPECT_EQ(progress.held(0).worker(), 0u);
  EXPECT_EQ(progress.held(0).step(), 1);
  EXPECT_EQ(progress.held(0).waiting_for(), "worker 1");
}

TEST_F(ServerCoreTest, RefusesWhatIsNoMessageAndWhatIsOfAnotherJob) {
  const auto stream = std::make_shared<FakeConnection>(1);
  const grpc::Slice slice("not a message");
  core_->OnMessage(stream, grpc::ByteBuffer(&slice, 1));
  EXPECT_EQ(stream->Await(1).outcome(), Reply::REFUSED);
  job_.mutable_chunks(0)->set_partition(9);
  Pull(stream, 0, 0, 0);
  EXPECT_EQ(stream->Await(2).outcome(), Reply::REFUSED);
}

}  // namespace
}  // namespace rubato::server
