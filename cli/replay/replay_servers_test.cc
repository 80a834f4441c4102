#include "cli/replay/replay_servers.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rubato {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLength = 16;

// Two chunks of zeros, plain SGD with rate 1: weights are minus the sum of gradients. Two members of two steps each.
class ReplayServersTest : public ::testing::Test {
 protected:
  ReplayServersTest() {
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    config_.mutable_optimizer()->set_learning_rate(1);
    config_.mutable_cluster()->set_wait_timeout_seconds(600);
    model_.tensors.push_back({"layer.bias", {2 * kLength}, v1::ZEROS, false, 2 * kLength, 1, false});
    for (uint32_t i = 0; i < 2; ++i) {
      v1::ChunkPlacement* chunk = job_.add_chunks();
      chunk->set_offset(i * kLength);
      chunk->set_length(kLength);
    }
    run_.plans[1].set_generation(1);
    run_.members.resize(2);
    for (uint32_t i = 0; i < 2; ++i) {
      run_.members[i].task.set_role(v1::TaskId::WORKER);
      run_.members[i].task.set_index(i);
    }
    // On both chunks: steps 0 of worker 1 and of worker 0, then step 1 of worker 1 from all that, and step 1 of worker
    // 0 from its own step alone, on the first chunk.
    run_.members[0].steps = {{.step = 0, .generation = 1, .slice = {}, .versions = {0, 1}},
                             {.step = 1, .generation = 1, .slice = {}, .versions = {2, 2}}};
    run_.members[1].steps = {{.step = 0, .generation = 1, .slice = {}, .versions = {0, 0}},
                             {.step = 1, .generation = 1, .slice = {}, .versions = {1, 2}}};
    const std::vector<RecordedRun::Update> order = {{{1, 0, 4}}, {{0, 0, 4}}, {{0, 1, 4}}, {{1, 1, 4}}};
    run_.updates = {order, order};
  }

  ReplayServers::Options Options() {
    return {.config = &config_, .model = &model_, .job = &job_, .run = &run_, .servers = 1, .clock = &clock_};
  }

  // Of `value` in every element.
  ReplayServers::Pushed Gradient(float value, uint64_t examples = 4) {
    gradients_.push_back(std::vector<float>(kLength, value));
    return {.examples = examples, .epoch = 0, .bytes = BytesOf(gradients_.back().data(), kLength), .codec = v1::NONE};
  }

  static float First(const absl::StatusOr<server::ChunkStore::Wire>& wire) {
    EXPECT_TRUE(wire.ok()) << wire.status();
    return wire.ok() ? wire->buffer->data()[0] : -99;
  }

  RealClock clock_;
  v1::JobConfig config_;
  ModelSpec model_;
  v1::JobDescription job_;
  RecordedRun run_;
  std::vector<std::vector<float>> gradients_;
};

TEST_F(ReplayServersTest, AppliesInTheRecordedOrderWhateverTheOrderOfArrival) {
  ReplayServers servers(Options());
  // Member 0 comes first, and is applied second.
  ASSERT_TRUE(servers.Push(0, 0, 0, Gradient(2)).ok());
  ASSERT_TRUE(servers.Push(1, 0, 0, Gradient(1)).ok());
  // Version 1 has worker 1's gradient alone, and is still to be had when the chunk has gone on.
  EXPECT_EQ(First(servers.Await(1, 1, 0)), -1);
  EXPECT_EQ(First(servers.Await(0, 1, 0)), -3);
  EXPECT_EQ(First(servers.Await(0, 0, 0)), 0);
}

TEST_F(ReplayServersTest, EveryThreadOrderGivesTheSameWeights) {
  for (int order = 0; order < 2; ++order) {
    ReplayServers servers(Options());
    const auto train = [&](size_t member) {
      for (size_t step = 0; step < 2; ++step) {
        std::vector<float> values[2];
        for (uint32_t chunk = 0; chunk < 2; ++chunk) {
          // A function of the weights that it was computed from.
          const float weight = First(servers.Await(member, step, chunk));
          values[chunk].assign(kLength, weight / 4 + static_cast<float>(member + 1));
        }
        for (uint32_t chunk = 0; chunk < 2; ++chunk) {
          EXPECT_TRUE(
              servers.Push(member, step, chunk, {.examples = 4, .bytes = BytesOf(values[chunk].data(), kLength)}).ok());
        }
        // Values go out of scope.
        EXPECT_TRUE(servers.AwaitApplied(member).ok());
      }
      servers.Leave(member);
    };
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 2; ++i) threads.emplace_back(train, order == 0 ? i : 1 - i);
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(servers.IsComplete()) << servers.failed();
    const std::vector<server::ChunkSnapshot> kept = servers.Keep(0);
    ASSERT_EQ(kept.size(), 2u);
    // Worker 1 from 0: 2; worker 0 from 0 (chunk 1: from -2): 1 (0.5); then each from its version.
    EXPECT_EQ(kept[0].weights->data()[0], -2.f - 1.f - (-3.f / 4 + 1) - (-2.f / 4 + 2));
    EXPECT_EQ(kept[1].weights->data()[0], -2.f - 0.5f - (-2.5f / 4 + 1) - (-2.5f / 4 + 2));
    EXPECT_EQ(kept[0].record.version(), 4);
  }
}

TEST_F(ReplayServersTest, KeepsTheVersionThatWasAskedFor) {
  ReplayServers::Options options = Options();
  options.until_version = 1;
  ReplayServers servers(options);
  for (uint32_t chunk = 0; chunk < 2; ++chunk) {
    EXPECT_FALSE(servers.IsComplete());
    ASSERT_TRUE(servers.Push(1, 0, chunk, Gradient(1)).ok());
  }
  EXPECT_TRUE(servers.IsComplete());
  EXPECT_EQ(servers.Keep(0)[1].weights->data()[3], -1);
  EXPECT_TRUE(absl::IsCancelled(servers.Await(0, 1, 0).status()));
}

TEST_F(ReplayServersTest, ARecordThatWaitsForItselfIsAnErrorAndNoHang) {
  // Each one's first step is said to be computed from the other's.
  run_.members[0].steps[0].versions = {1, 1};
  run_.updates[0] = {{{1, 0, 4}}, {{0, 0, 4}}};
  run_.members[1].steps[0].versions = {1, 1};
  ReplayServers servers(Options());
  absl::Status other;
  std::thread thread([&] { other = servers.Await(1, 0, 0).status(); });
  const absl::Status status = servers.Await(0, 0, 0).status();
  thread.join();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(other, status);
  EXPECT_THAT(status.message(), HasSubstr("step 0 of worker 0 waits for version 1 of chunk 0; step 0 of worker 1 waits "
                                          "for version 1 of chunk 0"));
}

// A clock on which much happens between two looks.
class HastyClock : public RealClock {
 public:
  absl::Time Now() const override { return now_ += absl::Minutes(11); }

 private:
  mutable absl::Time now_ = absl::UnixEpoch();
};

TEST_F(ReplayServersTest, AMemberThatDoesNotPushIsWaitedForAsLongAsTheConfigSays) {
  HastyClock clock;
  ReplayServers::Options options = Options();
  options.clock = &clock;
  ReplayServers servers(options);
  const absl::Status status = servers.Await(0, 1, 0).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("step 1 of worker 0 waits for version 2 of chunk 0, and nobody has pushed "
                                          "anything for longer than cluster.wait_timeout_seconds = 600"));
}

TEST_F(ReplayServersTest, WhoeverLeavesIsNotWaitedFor) {
  ReplayServers servers(Options());
  std::thread thread([&] { servers.Leave(1); });
  EXPECT_TRUE(absl::IsDataLoss(servers.Await(0, 1, 0).status()));
  thread.join();
}

TEST_F(ReplayServersTest, ExamplesAreThoseOfTheRecord) {
  ReplayServers servers(Options());
  const absl::Status status = servers.Push(1, 0, 0, Gradient(1, 3));
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(status.message(),
              HasSubstr("step 0 of worker 1 pushes a gradient of 3 examples to chunk 0; the record says of 4"));
}

TEST_F(ReplayServersTest, CancelEndsWaits) {
  ReplayServers servers(Options());
  std::thread thread([&] { servers.Cancel(absl::CancelledError("enough")); });
  EXPECT_EQ(servers.Await(0, 1, 0).status(), absl::CancelledError("enough"));
  thread.join();
}

}  // namespace
}  // namespace rubato
