// In which order the rows of a replay's tables are read and updated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/replay/replay_servers.h"
#include "common/table_keys.h"
#include "common/wire/exchange_codec.h"

namespace rubato {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 11;
constexpr int kKeys = 20;
// The tensor's chunk, and the table's two shards.
constexpr uint32_t kTensor = 0, kFirst = 1, kSecond = 2;

// A tensor of one weight, and a table of two shards with rows of one weight that begins with 0; plain SGD with rate 1.
// Two members of two steps each, which are computed from version 0 of everything unless a test says otherwise. In each
// shard, steps 0 of worker 1 and of worker 0 are applied, then their steps 1.
class ReplayRowsTest : public testing::Test {
 protected:
  ReplayRowsTest() {
    config_.set_seed(kSeed);
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    config_.mutable_optimizer()->set_learning_rate(1);
    config_.mutable_cluster()->set_wait_timeout_seconds(600);
    config_.mutable_cluster()->set_partitions_per_server(1);
    config_.mutable_cluster()->set_servers(1);
    model_.tensors.push_back({"layer.bias", {1}, v1::ZEROS, false, 1, 1, false});
    v1::TableConfig& table = *config_.mutable_model()->add_tables();
    table.set_name("words");
    table.set_dimension(1);
    table.set_shards(2);
    table.set_algorithm(v1::TableConfig::SGD);
    table.set_learning_rate(1);
    table.set_initial_bound(0);
    table.set_memory_bytes(1 << 20);
    FillTableDefaults(config_.mutable_model()->mutable_tables());
    model_.tables.push_back({.config = table});
    job_.add_chunks()->set_length(1);
    for (uint32_t shard = 0; shard < 2; ++shard) {
      v1::ChunkPlacement* chunk = job_.add_chunks();
      chunk->set_tensor(1);
      chunk->set_offset(shard);
      chunk->set_server(shard);
    }
    run_.plans[1].set_generation(1);
    run_.plans[1].set_mode(v1::ASYNC);
    run_.members.resize(2);
    for (uint32_t i = 0; i < 2; ++i) {
      run_.members[i].task.set_role(v1::TaskId::WORKER);
      run_.members[i].task.set_index(i);
      for (int64_t step = 0; step < 2; ++step) {
        run_.members[i].steps.push_back({.step = step, .generation = 1, .slice = {}, .versions = {0, 0, 0}});
      }
    }
    const std::vector<RecordedRun::Update> order = {{{1, 0, 4}}, {{0, 0, 4}}, {{1, 1, 4}}, {{0, 1, 4}}};
    run_.updates = {order, order, order};
    for (uint64_t key = 0; key < kKeys; ++key) keys_.push_back(key);
    std::sort(keys_.begin(), keys_.end(), [&](uint64_t a, uint64_t b) { return hash_.Of(a) < hash_.Of(b); });
  }

  // The members and steps of the recorded run, each shard on a server of its own.
  std::unique_ptr<ReplayServers> Make() {
    auto tables = ReplayTables::Create(config_, model_, job_, /*servers=*/2);
    EXPECT_TRUE(tables.ok()) << tables.status();
    tables_ = *std::move(tables);
    return std::make_unique<ReplayServers>(ReplayServers::Options{.config = &config_,
                                                                  .model = &model_,
                                                                  .job = &job_,
                                                                  .run = &run_,
                                                                  .tables = tables_.get(),
                                                                  .servers = 2,
                                                                  .clock = &clock_});
  }

  std::shared_ptr<const server::TableMessage> Message(const std::vector<uint64_t>& keys, const float* gradients) const {
    std::string bytes(reinterpret_cast<const char*>(keys.data()), sizeof(uint64_t) * keys.size());
    v1::TableKeys said;
    if (gradients == nullptr) {
      said.set_asked(keys.size());
    } else {
      said.set_pushed(keys.size());
      bytes.append(reinterpret_cast<const char*>(gradients), sizeof(float) * keys.size());
    }
    DecodedRequest request;
    if (!bytes.empty()) request.payload = PayloadView({grpc::Slice(bytes)}, 0, bytes.size());
    auto message = server::ReadTable(said, gradients != nullptr, {kFirst, kSecond}, request, nullptr,
                                     {.model = &model_, .seed = kSeed}, job_);
    EXPECT_TRUE(message.ok()) << message.status();
    return *message;
  }
  // Wants the rows of all keys.
  void Ask(ReplayServers* servers, size_t member, size_t step) {
    servers->AskRows(member, step, Message(keys_, nullptr));
  }
  // What the step adds to each of the keys' weights, and to the tensor.
  absl::Status Push(ReplayServers* servers, size_t member, size_t step, float value) {
    const std::vector<float> gradients(keys_.size(), -value);
    const auto message = Message(keys_, gradients.data());
    for (uint32_t shard = 0; shard < 2; ++shard) {
      const absl::Status status = servers->Push(
          member, step, kFirst + shard, {.examples = 4, .bytes = {}, .rows = {message, &message->by_chunk[shard]}});
      if (!status.ok()) return status;
    }
    tensor_gradients_[member][step] = -value;
    return servers->Push(member, step, kTensor, {.examples = 4, .bytes = BytesOf(&tensor_gradients_[member][step], 1)});
  }
  // The weight that all of a shard's rows have, by shard.
  std::vector<float> Await(ReplayServers* servers, size_t member, size_t step) {
    const auto shards = servers->AwaitRows(member, step, 0);
    EXPECT_TRUE(shards.ok()) << shards.status();
    std::vector<float> weights;
    if (!shards.ok()) return weights;
    for (const std::vector<uint8_t>& bytes : *shards) {
      std::vector<float> rows(bytes.size() / sizeof(float));
      std::memcpy(rows.data(), bytes.data(), bytes.size());
      EXPECT_THAT(rows, testing::Each(rows.front()));
      weights.push_back(rows.front());
    }
    return weights;
  }

  RealClock clock_;
  v1::JobConfig config_;
  ModelSpec model_;
  v1::JobDescription job_;
  RecordedRun run_;
  const KeyHash hash_ = HashOfTable(kSeed, 0);
  std::vector<uint64_t> keys_;
  // By member and step: they stay where they are until they are applied.
  float tensor_gradients_[2][2] = {};
  std::unique_ptr<ReplayTables> tables_;
};

TEST_F(ReplayRowsTest, AnUpdateWaitsForAllReadersOfTheVersionBefore) {
  run_.members[0].steps[1].versions = {0, 2, 1};
  run_.members[1].steps[1].versions = {0, 1, 2};
  const auto servers = Make();
  Ask(servers.get(), 1, 0);
  ASSERT_TRUE(Push(servers.get(), 1, 0, 1).ok());
  ASSERT_TRUE(Push(servers.get(), 0, 0, 2).ok());
  // Worker 0 has not said yet what it reads of version 0.
  Ask(servers.get(), 1, 1);
  Ask(servers.get(), 0, 0);
  EXPECT_THAT(Await(servers.get(), 0, 0), ElementsAre(0, 0));
  EXPECT_THAT(Await(servers.get(), 1, 0), ElementsAre(0, 0));
  // The second shard stays at version 1 for worker 0.
  Ask(servers.get(), 0, 1);
  EXPECT_THAT(Await(servers.get(), 1, 1), ElementsAre(1, 3));
  EXPECT_THAT(Await(servers.get(), 0, 1), ElementsAre(3, 1));
}

TEST_F(ReplayRowsTest, EveryThreadOrderGivesTheSameRows) {
  // Worker 0 is computed from its own step alone in one shard; worker 1 from both.
  run_.members[0].steps[0].versions = {0, 1, 1};
  run_.members[0].steps[1].versions = {2, 2, 3};
  run_.members[1].steps[1].versions = {1, 2, 2};
  for (int order = 0; order < 4; ++order) {
    const auto servers = Make();
    const auto train = [&](size_t member) {
      for (size_t step = 0; step < 2; ++step) {
        Ask(servers.get(), member, step);
        const std::vector<float> weights = Await(servers.get(), member, step);
        ASSERT_EQ(weights.size(), 2u);
        EXPECT_TRUE(servers->Await(member, step, kTensor).ok());
        EXPECT_TRUE(Push(servers.get(), member, step, 1 + weights[0] + 3 * weights[1]).ok());
      }
      EXPECT_TRUE(servers->AwaitApplied(member).ok());
      servers->Leave(member);
    };
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 2; ++i) threads.emplace_back(train, order % 2 == 0 ? i : 1 - i);
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(servers->IsComplete()) << servers->failed();
    // Worker 1 adds 1, worker 0 from that 5, worker 1 from 6 and 6 25, and worker 0 from 6 and 31 100.
    for (uint32_t server = 0; server < 2; ++server) {
      const server::ChunkSnapshot kept = servers->Keep(server).back();
      ASSERT_NE(kept.shard, nullptr);
      EXPECT_EQ(kept.shard->record.version(), 4);
      EXPECT_THAT(*kept.shard->rows, testing::Each(1 + 5 + 25 + 100));
    }
  }
}

TEST_F(ReplayRowsTest, AStepWithoutKeysHoldsNobodyUp) {
  const auto servers = Make();
  Ask(servers.get(), 1, 0);
  for (size_t step = 0; step < 2; ++step) servers->AskRows(0, step, Message({}, nullptr));
  servers->AskRows(1, 1, Message({}, nullptr));
  ASSERT_TRUE(Push(servers.get(), 1, 0, 1).ok());
  ASSERT_TRUE(Push(servers.get(), 0, 0, 1).ok());
  EXPECT_TRUE(servers->AwaitApplied(0).ok());
  const auto rows = servers->AwaitRows(0, 1, 0);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE((*rows)[0].empty() && (*rows)[1].empty());
}

TEST_F(ReplayRowsTest, KeepsTheShardAtTheVersionThatWasAskedFor) {
  auto tables = ReplayTables::Create(config_, model_, job_, 2);
  ASSERT_TRUE(tables.ok()) << tables.status();
  ReplayServers servers({.config = &config_,
                         .model = &model_,
                         .job = &job_,
                         .run = &run_,
                         .tables = tables->get(),
                         .servers = 2,
                         .until_version = 1,
                         .clock = &clock_});
  for (size_t member = 0; member < 2; ++member) {
    for (size_t step = 0; step < 2; ++step) Ask(&servers, member, step);
  }
  EXPECT_FALSE(servers.IsComplete());
  ASSERT_TRUE(Push(&servers, 1, 0, 4).ok());
  EXPECT_TRUE(servers.IsComplete());
  const server::ChunkSnapshot kept = servers.Keep(1).back();
  ASSERT_NE(kept.shard, nullptr);
  EXPECT_EQ(kept.shard->record.version(), 1);
  EXPECT_THAT(*kept.shard->rows, testing::Each(4));
}

TEST_F(ReplayRowsTest, RowsOfAVersionThatNobodyMakesAreAnErrorAndNoHang) {
  // Each one's first step is said to be computed from the other's.
  run_.members[0].steps[0].versions = {0, 1, 0};
  run_.members[1].steps[0].versions = {0, 0, 2};
  const auto servers = Make();
  for (size_t member = 0; member < 2; ++member) Ask(servers.get(), member, 0);
  absl::Status other;
  std::thread thread([&] { other = servers->AwaitRows(1, 0, 0).status(); });
  const absl::Status status = servers->AwaitRows(0, 0, 0).status();
  thread.join();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(other, status);
  EXPECT_THAT(status.message(),
              HasSubstr("the record contradicts itself: nobody can go on: step 0 of worker 0 waits for "
                        "version 1 of chunk 1; step 0 of worker 1 waits for version 2 of chunk 2"));
}

TEST_F(ReplayRowsTest, AReadingThatCannotHaveComeBeforeTheUpdateIsNamed) {
  // Worker 0 is said to have read version 0 of a shard for its step 1, after a step that needs what came of version 1.
  run_.members[0].steps[0].versions = {0, 0, 1};
  run_.members[0].steps[1].versions = {0, 0, 2};
  run_.members[1].steps[1].versions = {0, 1, 1};
  run_.updates[kSecond] = {{{1, 1, 4}}, {{1, 0, 4}}, {{0, 0, 4}}, {{0, 1, 4}}};
  run_.members[1].steps[1].versions[kSecond] = 0;
  const auto servers = Make();
  Ask(servers.get(), 1, 0);
  Ask(servers.get(), 0, 0);
  EXPECT_THAT(Await(servers.get(), 1, 0), ElementsAre(0, 0));
  ASSERT_TRUE(Push(servers.get(), 1, 0, 1).ok());
  Ask(servers.get(), 1, 1);
  absl::Status other;
  std::thread thread([&] { other = servers->AwaitRows(1, 1, 0).status(); });
  const absl::Status status = servers->AwaitRows(0, 0, 0).status();
  thread.join();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(other, status);
  EXPECT_THAT(status.message(), HasSubstr("step 0 of worker 0 waits for version 1 of chunk 2; step 1 of worker 1 waits "
                                          "for version 1 of chunk 1; version 1 of chunk 1 waits for step 1 of worker 0 "
                                          "to read rows of version 0"));
}

TEST_F(ReplayRowsTest, AnotherGradientThanTheRecordsIsNamed) {
  run_.updates[kSecond][0][0].gradient_crc = 1;
  const auto servers = Make();
  const absl::Status status = Push(servers.get(), 1, 0, 1);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("step 0 of worker 1 pushes another gradient to chunk 2"));
}

TEST_F(ReplayRowsTest, AFullTableIsNamed) {
  model_.tables[0].config.set_memory_bytes(1);
  const auto servers = Make();
  for (size_t member = 0; member < 2; ++member) {
    for (size_t step = 0; step < 2; ++step) Ask(servers.get(), member, step);
  }
  (void)Push(servers.get(), 1, 0, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(servers->failed())) << servers->failed();
  EXPECT_THAT(servers->failed().message(), HasSubstr("words"));
}

}  // namespace
}  // namespace rubato
