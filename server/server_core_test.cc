#include "server/server_core.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/transport/connection.h"
#include "common/wire/exchange_codec.h"
#include "server/rules/testing/builders.h"

namespace rubato::server {
namespace {

using Reply = v1::ExchangeReply;

constexpr absl::Duration kTimeout = absl::Seconds(30);
constexpr int64_t kLength = 4;

// A worker's stream that keeps what is sent on it.
class FakeConnection : public Connection {
 public:
  explicit FakeConnection(uint64_t id) : id_(id) {}
  uint64_t id() const override { return id_; }
  const std::string& peer() const override { return peer_; }
  void Send(grpc::ByteBuffer message, int64_t) override {
    absl::StatusOr<DecodedReply> reply = DecodeReply(message);
    EXPECT_TRUE(reply.ok()) << reply.status();
    MutexLock lock(mu_);
    replies_.push_back(reply->header);
    changed_.NotifyAll();
  }
  void Close(absl::Status) override {}

  // The last of `count` answers, or nothing where they do not come.
  Reply Await(size_t count) {
    MutexLock lock(mu_);
    while (replies_.size() < count) {
      if (!changed_.WaitFor(mu_, kTimeout)) break;
    }
    EXPECT_EQ(replies_.size(), count);
    return replies_.empty() ? Reply() : replies_.back();
  }
  size_t count() {
    MutexLock lock(mu_);
    return replies_.size();
  }

 private:
  const uint64_t id_;
  const std::string peer_ = "test";
  Mutex mu_;
  CondVar changed_;
  std::vector<Reply> replies_ ABSL_GUARDED_BY(mu_);
};

// A server with two partitions, in a job of two workers in SYNC. Chunk 0 is in partition 0, chunks 1 and 2 in 1.
class ServerCoreTest : public testing::Test {
 protected:
  ServerCoreTest() {
    ServerCore::Options options;
    options.config.mutable_cluster()->set_servers(1);
    options.config.mutable_cluster()->set_partitions_per_server(2);
    options.config.mutable_model()->add_input_shape(3 * kLength - 1);
    options.config.mutable_model()->add_layers()->mutable_linear()->set_units(1);
    options.config.mutable_model()->mutable_layers(0)->set_name("a");
    options.config.mutable_model()->set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
    options.config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    options.config.mutable_optimizer()->set_learning_rate(0.1);
    options.task.set_role(v1::TaskId::SERVER);
    options.task.set_incarnation(5);
    options.clock = &clock_;
    options.log = &log_;
    options.report = [this](v1::TaskMessage message) { OnReport(std::move(message)); };
    absl::StatusOr<std::unique_ptr<ServerCore>> core = ServerCore::Create(std::move(options));
    EXPECT_TRUE(core.ok()) << core.status();
    core_ = *std::move(core);
    job_.set_fingerprint(77);
    for (uint32_t i = 0; i < 3; ++i) {
      v1::ChunkPlacement* chunk = job_.add_chunks();
      // The weight in two parts, and the bias.
      chunk->set_tensor(i < 2 ? 0 : 1);
      chunk->set_offset(i == 1 ? kLength : 0);
      chunk->set_length(kLength);
      chunk->set_partition(i == 0 ? 0 : 1);
    }
    EXPECT_TRUE(core_->StartJob(job_).ok());
    v1::Directive commit;
    *commit.mutable_commit()->mutable_plan() = MakePlan(1, v1::SYNC, 0, {0, 1});
    core_->OnDirective(commit);
    AwaitReports(1);
  }

  // `push`: of this step; otherwise a pull of it.
  void Send(const std::shared_ptr<FakeConnection>& connection, uint32_t worker, uint32_t chunk, int64_t step,
            bool push) {
    v1::ExchangeRequest header;
    header.set_request_id(++last_request_);
    *header.mutable_task() = Worker(worker);
    header.set_job_fingerprint(77);
    header.set_generation(1);
    header.set_partition(job_.chunks(static_cast<int>(chunk)).partition());
    std::vector<grpc::Slice> payload;
    if (push) {
      header.mutable_push_pull()->set_step(step);
      header.mutable_push_pull()->set_examples(8);
      header.mutable_push_pull()->add_chunks()->set_chunk(chunk);
      header.mutable_push_pull()->mutable_chunks(0)->set_length(kLength);
      const std::vector<float> gradient(kLength, 1.0f);
      payload.emplace_back(gradient.data(), gradient.size() * sizeof(float));
    } else {
      header.mutable_pull()->set_step(step);
      header.mutable_pull()->add_chunks(chunk);
    }
    core_->OnMessage(connection, EncodeRequest(header, std::move(payload)));
  }
  void Pull(const std::shared_ptr<FakeConnection>& connection, uint32_t worker, uint32_t chunk, int64_t step) {
    Send(connection, worker, chunk, step, false);
  }
  void Push(const std::shared_ptr<FakeConnection>& connection, uint32_t worker, uint32_t chunk, int64_t step) {
    Send(connection, worker, chunk, step, true);
  }

  // Returns when the partitions have done what they were asked for before.
  void Settle() {
    v1::Directive announce;
    announce.mutable_announce()->set_generation(1);  // Is in force, and changes nothing.
    core_->OnDirective(announce);
    AwaitReports(reports_seen_ + 1);
  }
  v1::ServerProgress Progress() {
    core_->Progress();  // Asks for what the next one knows.
    Settle();
    return core_->Progress();
  }

  RealClock clock_;
  Logger log_{"test", &clock_};
  v1::JobDescription job_;
  std::unique_ptr<ServerCore> core_;
  uint64_t last_request_ = 0;
  int reports_seen_ = 0;

 private:
  void OnReport(v1::TaskMessage) {
    MutexLock lock(mu_);
    ++reports_;
    changed_.NotifyAll();
  }
  void AwaitReports(int count) {
    MutexLock lock(mu_);
    while (reports_ < count) {
      if (!changed_.WaitFor(mu_, kTimeout)) break;
    }
    EXPECT_GE(reports_, count);
    reports_seen_ = reports_;
  }

  Mutex mu_;
  CondVar changed_;
  int reports_ ABSL_GUARDED_BY(mu_) = 0;
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
