#include "server/server_core.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

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

TEST_F(ServerCoreTest, RefusesWhatIsSaidInAnotherWorkersName) {
  const auto impostor = std::make_shared<FakeConnection>(7, Identity{"job", Party::kWorker, 1});
  Push(impostor, 0, 0, 0);
  const Reply refused = impostor->Await(1);
  EXPECT_EQ(refused.outcome(), Reply::REFUSED);
  EXPECT_EQ(refused.message(), "the message says that it is of worker 0, and came with the certificate of worker 1");
  Pull(impostor, 1, 0, 0);
  EXPECT_EQ(impostor->Await(2).outcome(), Reply::OK);
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

// In ASYNC, with a compensation. The bias, chunk 2, is zero at first, its gradients are 1, and the learning rate is
// 0.1.
class ServerCompensationTest : public ServerCoreHarness {
 protected:
  static constexpr uint32_t kBias = 2;

  void Start() {
    MakeCore();
    ASSERT_TRUE(core_->StartJob(job_).ok());
    Commit(MakePlan(1, v1::ASYNC, 0, {0, 1}));
    Pull(streams_[0], 0, kBias, 0);
    Pull(streams_[1], 1, kBias, 0);
    for (const auto& stream : streams_) stream->Await(1);
  }
  v1::CompensationConfig* compensation() { return config_.mutable_consistency()->mutable_compensation(); }
  // The worker pushes, and is answered with the weights after it.
  float PushOf(uint32_t worker, int64_t step, int64_t base_version) {
    const size_t before = streams_[worker]->count();
    base_version_ = base_version;
    Push(streams_[worker], worker, kBias, step);
    answer_ = streams_[worker]->Await(before + 1);
    const std::vector<float> weights = streams_[worker]->payload();
    EXPECT_EQ(weights.size(), 1u);
    return weights.empty() ? 0 : weights[0];
  }

  const std::shared_ptr<FakeConnection> streams_[2] = {std::make_shared<FakeConnection>(1),
                                                       std::make_shared<FakeConnection>(2)};
  Reply answer_;
};

TEST_F(ServerCompensationTest, APushIsComparedWithTheWeightsThatItsWorkerWasAnswered) {
  compensation()->mutable_dc_asgd()->set_lambda(0.5);
  Start();
  EXPECT_FLOAT_EQ(PushOf(1, 0, 0), -0.1f);  // Of the weights that it is applied to.
  EXPECT_FLOAT_EQ(PushOf(1, 1, 1), -0.2f);
  EXPECT_FLOAT_EQ(PushOf(0, 0, 0), -0.2f - 0.1f * (1 + 0.5f * (-0.2f - 0)));  // Of those before both.
  EXPECT_FLOAT_EQ(PushOf(1, 2, 2), -0.29f - 0.1f * (1 + 0.5f * (-0.29f + 0.2f)));
}

TEST_F(ServerCompensationTest, APushThatIsTooStaleIsDroppedAndCounted) {
  compensation()->mutable_ringmaster()->set_threshold(2);
  Start();
  EXPECT_FLOAT_EQ(PushOf(1, 0, 0), -0.1f);
  EXPECT_FLOAT_EQ(PushOf(1, 1, 1), -0.2f);
  EXPECT_FLOAT_EQ(PushOf(0, 0, 0), -0.2f);
  EXPECT_EQ(answer_.outcome(), Reply::OK);  // With the weights of its next step.
  EXPECT_EQ(answer_.push(), Reply::PUSH_DROPPED);
  EXPECT_FLOAT_EQ(PushOf(0, 1, 2), -0.3f);
  EXPECT_EQ(answer_.push(), Reply::PUSH_APPLIED);
  const v1::ServerProgress progress = Progress();
  EXPECT_EQ(progress.dropped_total(), 1);
  EXPECT_EQ(progress.updates_total(), 3);
}

TEST_F(ServerCompensationTest, TheStalenessOfAPushDividesItsRate) {
  compensation()->mutable_staleness_aware();
  Start();
  EXPECT_FLOAT_EQ(PushOf(1, 0, 0), -0.1f);
  EXPECT_FLOAT_EQ(PushOf(1, 1, 1), -0.2f);
  EXPECT_FLOAT_EQ(PushOf(0, 0, 0), -0.25f);
}

// One partition, and pushes to the bias, as above, that come while it is at work.
class ServerHeldAnswersTest : public ServerCoreHarness {
 protected:
  static constexpr uint32_t kWorkers = 20, kBias = 2;

  ServerHeldAnswersTest() {
    config_.mutable_cluster()->set_partitions_per_server(1);
    for (v1::ChunkPlacement& chunk : *job_.mutable_chunks()) chunk.set_partition(0);
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      members_.push_back(worker);
      streams_.push_back(std::make_shared<FakeConnection>(worker + 1));
    }
  }
  void Start(v1::Mode mode) {
    MakeCore();
    ASSERT_TRUE(core_->StartJob(job_).ok());
    Commit(MakePlan(1, mode, 0, members_, 5, mode == v1::SYNC ? 1 : 0));
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      Pull(streams_[worker], worker, kBias, 0);
      streams_[worker]->Await(1);
    }
  }
  // Of the weights in the worker's answer to its push, if they are those.
  int64_t Version(uint32_t worker) {
    const Reply answer = streams_[worker]->Await(2);
    EXPECT_EQ(answer.outcome(), Reply::OK);
    if (answer.chunks_size() != 1) return -1;
    EXPECT_FLOAT_EQ(streams_[worker]->payload().at(0), -0.1f * static_cast<float>(answer.chunks(0).version()));
    return answer.chunks(0).version();
  }

  std::vector<uint32_t> members_;
  std::vector<std::shared_ptr<FakeConnection>> streams_;
};

TEST_F(ServerHeldAnswersTest, AnswersPushesThatCameTogetherWithTheWeightsAfterThem) {
  for (v1::Mode mode : {v1::ASYNC, v1::SSP}) {
    Start(mode);
    WhileBusy([&] {
      for (uint32_t worker : {2, 0, 1}) Push(streams_[worker], worker, kBias, 0);
    });
    for (uint32_t worker : {0, 1, 2}) EXPECT_EQ(Version(worker), 3);
    EXPECT_EQ(streams_[2]->Await(2).chunks(0).applied_to_version(), 0);
    EXPECT_EQ(streams_[0]->Await(2).chunks(0).applied_to_version(), 1);
    EXPECT_EQ(Progress().waits_total(), 0);
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      streams_[worker] = std::make_shared<FakeConnection>(worker + 1);
    }
  }
}

TEST_F(ServerHeldAnswersTest, NoAnswerWaitsForMoreThanSixteen) {
  Start(v1::ASYNC);
  WhileBusy([&] {
    for (uint32_t worker = 0; worker < kWorkers; ++worker) Push(streams_[worker], worker, kBias, 0);
  });
  for (uint32_t worker = 0; worker < kWorkers; ++worker) EXPECT_EQ(Version(worker), worker < 16 ? 16 : kWorkers);
}

TEST_F(ServerHeldAnswersTest, AnswersASyncPushWithTheWeightsOfItsStep) {
  Start(v1::SYNC);  // A step needs one push.
  WhileBusy([&] {
    for (uint32_t worker : {0, 1}) Push(streams_[worker], worker, kBias, 0);
  });
  EXPECT_EQ(Version(0), 1);
}

TEST_F(ServerHeldAnswersTest, AnswersBeforeANewPlan) {
  Start(v1::ASYNC);
  const v1::Plan sync = MakePlan(2, v1::SYNC, 1, members_);
  WhileBusy([&] {
    Push(streams_[0], 0, kBias, 0);
    v1::Directive commit;
    *commit.mutable_commit()->mutable_plan() = sync;
    core_->OnDirective(commit);
    Push(streams_[1], 1, kBias, 0);
  });
  EXPECT_EQ(Version(0), 1);
}

TEST_F(ServerHeldAnswersTest, AnswersAWorkerBeforeItTakesWhatItAsksAgain) {
  Start(v1::ASYNC);
  const auto again = std::make_shared<FakeConnection>(kWorkers + 1);
  WhileBusy([&] {
    Push(streams_[0], 0, kBias, 0);
    Push(again, 0, kBias, 0);
    Push(streams_[1], 1, kBias, 0);
  });
  EXPECT_EQ(Version(0), 1);
  const Reply answer = again->Await(1);
  EXPECT_EQ(answer.push(), Reply::PUSH_DUPLICATE);
  EXPECT_EQ(answer.chunks(0).version(), 2);
  EXPECT_EQ(Version(1), 2);
}

}  // namespace
}  // namespace rubato::server
