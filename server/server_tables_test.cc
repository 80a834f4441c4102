// Rows of tables between a server and workers that share memory with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/link.h"
#include "common/shared_memory/listener.h"
#include "common/shared_memory/region.h"
#include "common/table_keys.h"
#include "server/rules/testing/builders.h"
#include "server/server_core.h"
#include "server/testing/server_core_harness.h"

namespace rubato::server {
namespace {

using Reply = v1::ExchangeReply;

constexpr int kDimension = 3;
constexpr uint32_t kShards = 4;
constexpr uint32_t kFirstShard = 3;
constexpr size_t kBytes = size_t{1} << 20;
constexpr absl::Duration kTimeout = absl::Seconds(30);

// In ASYNC, with a table behind the harness's tensors, in partition 1.
class ServerTablesTest : public ServerCoreHarness {
 protected:
  ServerTablesTest() {
    v1::TableConfig& table = *config_.mutable_model()->add_tables();
    table.set_name("users");
    table.set_dimension(kDimension);
    table.set_algorithm(v1::TableConfig::SGD);
    table.set_learning_rate(0.5);
    table.set_shards(kShards);
    FillTableDefaults(config_.mutable_model()->mutable_tables());
    // Rows are a part of the layer's input.
    job_.mutable_chunks(1)->set_length(kLength + kDimension);
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      v1::ChunkPlacement* chunk = job_.add_chunks();
      chunk->set_tensor(2);
      chunk->set_offset(shard);
      chunk->set_partition(1);
    }
    for (uint64_t key = 0; key < 50; ++key) keys_.push_back(key);
    const KeyHash hash = HashOfTable(config_.seed(), 0);
    std::sort(keys_.begin(), keys_.end(), [&](uint64_t a, uint64_t b) { return hash.Of(a) < hash.Of(b); });

    arena_ = SharedArena::Create("server", kBytes).value();
    SharedMemoryListener::Options options;
    options.offered = arena_->shared_region();
    options.clock = &clock_;
    options.log = &log_;
    shared_ = SharedMemoryListener::Create(std::move(options)).value();
    MakeCore();
    EXPECT_TRUE(core_->StartJob(job_).ok());
    Commit(MakePlan(1, v1::ASYNC, 0, {0, 1}));
    for (uint32_t worker : {0, 1}) {
      links_.push_back(SharedMemoryLink::Connect(shared_->address(), Worker(worker), mine_, kBytes, kTimeout).value());
    }
  }

  v1::ExchangeRequest Request(uint32_t worker) {
    v1::ExchangeRequest header;
    header.set_request_id(++last_request_);
    *header.mutable_task() = Worker(worker);
    header.set_job_fingerprint(77);
    header.set_generation(1);
    header.set_partition(1);
    return header;
  }
  void AddSpan(uint64_t offset, const void* data, size_t bytes, v1::ExchangeRequest* header) {
    std::memcpy(mine_->mutable_data() + offset, data, bytes);
    v1::SharedSpan* span = header->add_shared();
    span->set_offset(offset);
    span->set_bytes(bytes);
  }

  // Asks for all rows of step 0.
  v1::ExchangeRequest Pull(uint32_t worker) {
    v1::ExchangeRequest header = Request(worker);
    header.mutable_pull()->set_step(0);
    for (uint32_t shard = 0; shard < kShards; ++shard) header.mutable_pull()->add_chunks(kFirstShard + shard);
    header.mutable_pull()->mutable_table()->set_asked(keys_.size());
    return header;
  }
  v1::ExchangeRequest SharedPull(uint32_t worker) {
    v1::ExchangeRequest header = Pull(worker);
    header.set_shared_session(links_[worker]->session());
    AddSpan(0, keys_.data(), 0, &header);
    AddSpan(4096, keys_.data(), keys_.size() * sizeof(uint64_t), &header);
    return header;
  }
  // The rows, from a message.
  std::vector<float> PulledRows(uint32_t worker) {
    const auto connection = std::make_shared<FakeConnection>(100 + last_request_);
    std::vector<grpc::Slice> payload;
    payload.emplace_back(keys_.data(), keys_.size() * sizeof(uint64_t));
    core_->OnMessage(connection, EncodeRequest(Pull(worker), std::move(payload)));
    const Reply reply = connection->Await(1);
    EXPECT_EQ(reply.outcome(), Reply::OK) << reply.message();
    EXPECT_EQ(reply.shared_size(), 0);
    EXPECT_EQ(connection->payload().size(), keys_.size() * kDimension);
    return connection->payload();
  }
  Reply Ask(const v1::ExchangeRequest& header) {
    const auto connection = std::make_shared<FakeConnection>(100 + last_request_);
    core_->OnMessage(connection, EncodeRequest(header, {}));
    const Reply reply = connection->Await(1);
    EXPECT_TRUE(reply.shared_size() == 0 || connection->payload().empty());
    return reply;
  }
  // Where an answer says that all rows are.
  std::vector<float> RowsAt(const Reply& reply) {
    EXPECT_EQ(reply.outcome(), Reply::OK) << reply.message();
    EXPECT_EQ(reply.shared_size(), 1);
    std::vector<float> rows(keys_.size() * kDimension);
    EXPECT_EQ(reply.shared(0).bytes(), rows.size() * sizeof(float));
    std::memcpy(rows.data(), links_[0]->peer().Find(reply.shared(0).offset(), reply.shared(0).bytes()),
                rows.size() * sizeof(float));
    return rows;
  }

  std::vector<uint64_t> keys_;
  const std::shared_ptr<SharedRegion> mine_ = SharedRegion::Create("worker", kBytes).value();
  // By worker.
  std::vector<std::unique_ptr<SharedMemoryLink>> links_;
};

TEST_F(ServerTablesTest, RowsGoBeforeTensors) {
  const auto connection = std::make_shared<FakeConnection>(100);
  std::vector<grpc::Slice> payload;
  payload.emplace_back(keys_.data(), keys_.size() * sizeof(uint64_t));
  core_->OnMessage(connection, EncodeRequest(Pull(0), std::move(payload)));
  EXPECT_EQ(connection->Await(1).outcome(), Reply::OK);
  const int64_t rows = connection->priority();
  v1::ExchangeRequest tensors = Request(0);
  tensors.mutable_pull()->set_step(0);
  for (uint32_t chunk : {1, 2}) tensors.mutable_pull()->add_chunks(chunk);
  core_->OnMessage(connection, EncodeRequest(tensors, {}));
  EXPECT_EQ(connection->Await(2).outcome(), Reply::OK);
  EXPECT_LT(rows, connection->priority());
}

TEST_F(ServerTablesTest, KeysAndRowsGoThroughSharedMemory) { EXPECT_EQ(RowsAt(Ask(SharedPull(0))), PulledRows(0)); }

TEST_F(ServerTablesTest, PushesAreAppliedWhereTheyAre) {
  const std::vector<float> before = PulledRows(0);
  v1::ExchangeRequest push = Request(0);
  push.set_shared_session(links_[0]->session());
  push.mutable_push_pull()->set_examples(8);
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    push.mutable_push_pull()->add_chunks()->set_chunk(kFirstShard + shard);
  }
  push.mutable_push_pull()->mutable_table()->set_pushed(keys_.size());
  push.mutable_push_pull()->mutable_table()->set_asked(keys_.size());
  std::string pushed(reinterpret_cast<const char*>(keys_.data()), keys_.size() * sizeof(uint64_t));
  std::vector<float> expected = before;
  for (float& weight : expected) {
    const float gradient = weight * 3;
    pushed.append(reinterpret_cast<const char*>(&gradient), sizeof(float));
    weight -= 0.5f * gradient;
  }
  AddSpan(0, pushed.data(), pushed.size(), &push);
  AddSpan(8192, keys_.data(), keys_.size() * sizeof(uint64_t), &push);
  const Reply reply = Ask(push);
  EXPECT_EQ(reply.push(), Reply::PUSH_APPLIED);
  EXPECT_EQ(RowsAt(reply), expected);
  EXPECT_EQ(PulledRows(1), expected);
  const v1::ServerProgress progress = Progress();
  EXPECT_EQ(progress.rows_applied_total(), static_cast<int64_t>(keys_.size()));
  EXPECT_EQ(progress.received_bytes_total(), static_cast<int64_t>(pushed.size() + keys_.size() * sizeof(uint64_t)));
}

TEST_F(ServerTablesTest, RowsStayUntilTheirWorkerAsksAgain) {
  const Reply first = Ask(SharedPull(0)), other = Ask(SharedPull(1));
  EXPECT_NE(first.shared(0).offset(), other.shared(0).offset());
  const size_t left = arena_->bytes_left();
  const Reply again = Ask(SharedPull(0));
  EXPECT_EQ(again.shared(0).offset(), first.shared(0).offset());
  EXPECT_EQ(RowsAt(other), RowsAt(again));
  EXPECT_EQ(arena_->bytes_left(), left);
}

TEST_F(ServerTablesTest, WhereThereIsNoRoomRowsGoInTheMessage) {
  while (arena_->Allocate(4096) != nullptr) {
  }
  const auto connection = std::make_shared<FakeConnection>(1);
  core_->OnMessage(connection, EncodeRequest(SharedPull(0), {}));
  EXPECT_EQ(connection->Await(1).shared_size(), 0);
  EXPECT_EQ(connection->payload(), PulledRows(0));
}

TEST_F(ServerTablesTest, SpansOutsideOfTheWorkersMemoryAreRefused) {
  v1::ExchangeRequest request = SharedPull(0);
  request.mutable_shared(1)->set_offset(kBytes - 8);
  const Reply reply = Ask(request);
  EXPECT_EQ(reply.outcome(), Reply::REFUSED);
  EXPECT_TRUE(absl::StrContains(reply.message(), "pull: shared[1]: 400 bytes from 1048568 are not inside"))
      << reply.message();
}

}  // namespace
}  // namespace rubato::server
