#ifndef RUBATO_SERVER_TESTING_SERVER_CORE_HARNESS_H_
#define RUBATO_SERVER_TESTING_SERVER_CORE_HARNESS_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/listener.h"
#include "common/transport/connection.h"
#include "common/wire/exchange_codec.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "server/rules/testing/builders.h"
#include "server/server_core.h"

namespace rubato::server {

// A worker's stream that keeps what is sent on it.
class FakeConnection : public Connection {
 public:
  explicit FakeConnection(uint64_t id) : id_(id) {}
  FakeConnection(uint64_t id, Identity identity) : id_(id), identity_(std::move(identity)) {}
  static constexpr absl::Duration kTimeout = absl::Seconds(30);

  uint64_t id() const override { return id_; }
  const std::string& peer() const override { return peer_; }
  const std::optional<Identity>& identity() const override { return identity_; }
  void Send(grpc::ByteBuffer&& message, int64_t priority) override {
    absl::StatusOr<DecodedReply> reply = DecodeReply(message);
    EXPECT_TRUE(reply.ok()) << reply.status();
    MutexLock lock(mu_);
    priority_ = priority;
    replies_.push_back(reply->header);
    payload_.resize(reply->payload.size() / sizeof(float));
    reply->payload.CopyTo(0, payload_.size() * sizeof(float), payload_.data());
    changed_.NotifyAll();
  }
  void Close(absl::Status) override {}

  // The last of `count` answers, or nothing if they do not come.
  v1::ExchangeReply Await(size_t count) {
    MutexLock lock(mu_);
    while (replies_.size() < count) {
      if (!changed_.WaitFor(mu_, kTimeout)) break;
    }
    EXPECT_EQ(replies_.size(), count);
    return replies_.empty() ? v1::ExchangeReply() : replies_.back();
  }
  size_t count() {
    MutexLock lock(mu_);
    return replies_.size();
  }
  // Of the last answer.
  int64_t priority() {
    MutexLock lock(mu_);
    return priority_;
  }
  std::vector<float> payload() {
    MutexLock lock(mu_);
    return payload_;
  }

 private:
  const uint64_t id_;
  const std::string peer_ = "test";
  const std::optional<Identity> identity_;
  Mutex mu_;
  CondVar changed_;
  std::vector<v1::ExchangeReply> replies_ ABSL_GUARDED_BY(mu_);
  std::vector<float> payload_ ABSL_GUARDED_BY(mu_);
  int64_t priority_ ABSL_GUARDED_BY(mu_) = 0;
};

// A server with two partitions, for a job of two workers. Chunk 0 is in partition 0, chunks 1 and 2 in 1.
class ServerCoreHarness : public testing::Test {
 protected:
  static constexpr int64_t kLength = 4;
  static constexpr absl::Duration kTimeout = absl::Seconds(30);

  ServerCoreHarness() {
    config_.mutable_cluster()->set_servers(1);
    config_.mutable_cluster()->set_partitions_per_server(2);
    config_.mutable_model()->add_input_shape(2 * kLength);
    config_.mutable_model()->add_layers()->mutable_linear()->set_units(1);
    config_.mutable_model()->mutable_layers(0)->set_name("a");
    config_.mutable_model()->set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
    config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
    config_.mutable_optimizer()->set_learning_rate(0.1);
    job_.set_fingerprint(77);
    for (uint32_t i = 0; i < 3; ++i) {
      v1::ChunkPlacement* chunk = job_.add_chunks();
      // The weight in two parts, and the bias.
      chunk->set_tensor(i < 2 ? 0 : 1);
      chunk->set_offset(i == 1 ? kLength : 0);
      chunk->set_length(i < 2 ? kLength : 1);
      chunk->set_partition(i == 0 ? 0 : 1);
    }
  }
  ~ServerCoreHarness() override { core_.reset(); }  // Before what its threads report to.

  // A core that was told nothing yet, in the place of the one before.
  void MakeCore(uint64_t incarnation = 5) {
    core_.reset();
    ServerCore::Options options;
    options.config = config_;
    options.task.set_role(v1::TaskId::SERVER);
    options.task.set_incarnation(incarnation);
    options.clock = &clock_;
    options.log = &log_;
    options.report = [this](v1::TaskMessage message) { OnReport(std::move(message)); };
    options.on_lost_part = on_lost_part_;
    options.arena = arena_;
    options.shared = shared_.get();
    absl::StatusOr<std::unique_ptr<ServerCore>> core = ServerCore::Create(std::move(options));
    ASSERT_TRUE(core.ok()) << core.status();
    core_ = *std::move(core);
  }
  void Commit(const v1::Plan& plan) {
    v1::Directive commit;
    *commit.mutable_commit()->mutable_plan() = plan;
    const int count = reports();
    core_->OnDirective(commit);
    AwaitReports(count + 1);
  }

  // `push`: of this step; otherwise a pull of it.
  void Send(const std::shared_ptr<FakeConnection>& connection, uint32_t worker, uint32_t chunk, int64_t step,
            bool push) {
    v1::ExchangeRequest header;
    header.set_request_id(++last_request_);
    *header.mutable_task() = Worker(worker);
    header.set_job_fingerprint(77);
    header.set_generation(generation_);
    header.set_partition(job_.chunks(static_cast<int>(chunk)).partition());
    std::vector<grpc::Slice> payload;
    if (push) {
      header.mutable_push_pull()->set_step(step);
      header.mutable_push_pull()->set_examples(8);
      header.mutable_push_pull()->add_chunks()->set_chunk(chunk);
      header.mutable_push_pull()->mutable_chunks(0)->set_length(job_.chunks(static_cast<int>(chunk)).length());
      header.mutable_push_pull()->mutable_chunks(0)->set_base_version(base_version_);
      const std::vector<float> gradient(job_.chunks(static_cast<int>(chunk)).length(), 1.0f);
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
    const int count = reports();
    core_->OnDirective(announce);
    AwaitReports(count + 1);
  }
  v1::ServerProgress Progress() {
    core_->Progress();  // Asks for what the next one knows.
    Settle();
    return core_->Progress();
  }

  // Does it while the only partition is at work on something else; what it sends there waits in the queue together.
  void WhileBusy(const std::function<void()>& send) {
    v1::Directive announce;
    announce.mutable_announce()->set_generation(1);  // Is in force, and changes nothing.
    const int count = reports();
    HoldReports(true);
    core_->OnDirective(announce);
    AwaitReports(count + 1);
    send();
    HoldReports(false);
  }

  // Of all reports, the last one of this kind; waits until there is one.
  v1::TaskMessage AwaitReport(v1::TaskMessage::BodyCase body) {
    MutexLock lock(mu_);
    for (;;) {
      for (auto report = reports_.rbegin(); report != reports_.rend(); ++report) {
        if (report->body_case() == body) return *report;
      }
      if (changed_.WaitFor(mu_, kTimeout)) continue;
      ADD_FAILURE() << "no report of kind " << body;
      return {};
    }
  }
  int reports() {
    MutexLock lock(mu_);
    return static_cast<int>(reports_.size());
  }
  void AwaitReports(int count) {
    MutexLock lock(mu_);
    while (static_cast<int>(reports_.size()) < count) {
      if (!changed_.WaitFor(mu_, kTimeout)) break;
    }
    EXPECT_GE(static_cast<int>(reports_.size()), count);
  }

  RealClock clock_;
  Logger log_{"test", &clock_};
  v1::JobConfig config_;
  v1::JobDescription job_;
  // Null: workers share no memory with it.
  std::shared_ptr<SharedArena> arena_;
  std::unique_ptr<SharedMemoryListener> shared_;
  std::unique_ptr<ServerCore> core_;
  // Of the plan that workers work under.
  uint64_t generation_ = 1;
  uint64_t last_request_ = 0;
  // That pushes were computed from.
  int64_t base_version_ = 0;
  std::function<void(const absl::Status& status)> on_lost_part_;

 private:
  void OnReport(v1::TaskMessage message) {
    MutexLock lock(mu_);
    reports_.push_back(std::move(message));
    changed_.NotifyAll();
    while (held_ && changed_.WaitFor(mu_, kTimeout)) {
    }
  }
  // Whoever reports waits until it is false.
  void HoldReports(bool held) {
    MutexLock lock(mu_);
    held_ = held;
    changed_.NotifyAll();
  }

  Mutex mu_;
  CondVar changed_;
  std::vector<v1::TaskMessage> reports_ ABSL_GUARDED_BY(mu_);
  bool held_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_TESTING_SERVER_CORE_HARNESS_H_
