// Messages of workers and plans of a coordinator, in any order, to a server with two partitions and a table: each
// message is answered once at most, with versions that can be, and every announcement is acknowledged.
//
// Input: ServerEvents.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/transport/connection.h"
#include "common/wire/exchange_codec.h"
#include "server/server_core.h"
#include "tests/fuzz/events.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace rubato::server {
namespace {

constexpr int64_t kLength = 4;
constexpr int kDimension = 3;
constexpr uint32_t kShards = 4;
constexpr uint64_t kFingerprint = 77;
constexpr int kEventsMax = 64;
constexpr absl::Duration kPatience = absl::Seconds(60);

// A layer of 8 inputs and one output in two partitions, and behind it a table.
v1::JobConfig MakeConfig() {
  v1::JobConfig config;
  config.mutable_cluster()->set_servers(1);
  config.mutable_cluster()->set_partitions_per_server(2);
  config.mutable_model()->add_input_shape(2 * kLength);
  v1::LayerConfig* layer = config.mutable_model()->add_layers();
  layer->set_name("a");
  layer->mutable_linear()->set_units(1);
  config.mutable_model()->set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
  v1::TableConfig* table = config.mutable_model()->add_tables();
  table->set_name("users");
  table->set_dimension(kDimension);
  table->set_algorithm(v1::TableConfig::SGD);
  table->set_learning_rate(0.5);
  table->set_shards(kShards);
  FillTableDefaults(config.mutable_model()->mutable_tables());
  config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::ADAM);
  config.mutable_optimizer()->set_learning_rate(0.1);
  return config;
}

// Chunk 0 is in partition 0, 1 and 2 are in 1, and so are the shards of the table, 3 to 6.
v1::JobDescription MakeJob() {
  v1::JobDescription job;
  job.set_fingerprint(kFingerprint);
  const auto add = [&](uint32_t tensor, int64_t offset, int64_t length, uint32_t partition) {
    v1::ChunkPlacement* chunk = job.add_chunks();
    chunk->set_tensor(tensor);
    chunk->set_offset(offset);
    chunk->set_length(length);
    chunk->set_partition(partition);
  };
  add(0, 0, kLength, 0);
  // Rows are a part of the layer's input.
  add(0, kLength, kLength + kDimension, 1);
  add(1, 0, 1, 1);
  for (uint32_t shard = 0; shard < kShards; ++shard) add(2, shard, 0, 1);
  return job;
}

// Counts what is asked and answered.
class CountingConnection : public Connection {
 public:
  explicit CountingConnection(uint64_t id) : id_(id) {}

  uint64_t id() const override { return id_; }
  const std::string& peer() const override { return peer_; }
  const std::optional<Identity>& identity() const override { return identity_; }
  void Close(absl::Status) override {}
  void Send(grpc::ByteBuffer&& message, int64_t) override {
    const absl::StatusOr<DecodedReply> reply = DecodeReply(message);
    RUBATO_FUZZ_CHECK(reply.ok(), reply.status());
    const v1::ExchangeReply& header = reply->header;
    MutexLock lock(mu_);
    RUBATO_FUZZ_CHECK(--asked_[header.request_id()] >= 0, header.request_id());
    RUBATO_FUZZ_CHECK(header.outcome() != v1::ExchangeReply::OUTCOME_UNSPECIFIED, header.request_id());
    RUBATO_FUZZ_CHECK(header.outcome() != v1::ExchangeReply::REFUSED || !header.message().empty(),
                      "refused, no reason");
    for (const v1::ChunkWeights& weights : header.chunks()) {
      RUBATO_FUZZ_CHECK(weights.version() >= 0, weights.version());
      RUBATO_FUZZ_CHECK(weights.applied_to_version() <= weights.version(), weights.version());
    }
  }

  void Ask(uint64_t request) {
    MutexLock lock(mu_);
    ++asked_[request];
  }

 private:
  const uint64_t id_;
  const std::string peer_ = "fuzzer";
  const std::optional<Identity> identity_;
  Mutex mu_;
  std::map<uint64_t, int> asked_ ABSL_GUARDED_BY(mu_);
};

class Run {
 public:
  Run() {
    ServerCore::Options options;
    options.config = MakeConfig();
    options.task.set_role(v1::TaskId::SERVER);
    options.task.set_incarnation(5);
    options.clock = &clock_;
    options.log = &log_;
    options.report = [this](v1::TaskMessage message) { OnReport(message); };
    options.on_failure = [](const absl::Status& status) { RUBATO_FUZZ_CHECK(false, status); };
    absl::StatusOr<std::unique_ptr<ServerCore>> core = ServerCore::Create(std::move(options));
    RUBATO_FUZZ_CHECK(core.ok(), core.status());
    core_ = *std::move(core);
    const absl::Status started = core_->StartJob(MakeJob());
    RUBATO_FUZZ_CHECK(started.ok(), started);
    v1::Directive commit;
    v1::Plan* plan = commit.mutable_commit()->mutable_plan();
    plan->set_generation(1);
    plan->set_mode(v1::SYNC);
    for (uint32_t worker : {0, 1}) {
      v1::TaskId* member = plan->add_members();
      member->set_role(v1::TaskId::WORKER);
      member->set_index(worker);
      member->set_incarnation(1);
    }
    core_->OnDirective(commit);
  }
  ~Run() { core_.reset(); }  // Before what its threads report to.

  void Do(const v1::ServerEvent& event) {
    const std::shared_ptr<CountingConnection>& connection = connections_[event.connection() % 2];
    v1::Directive directive;
    switch (event.event_case()) {
      case v1::ServerEvent::kRequest:
        Bring(connection, event.request().SerializeAsString());
        return;
      case v1::ServerEvent::kMessage:
        Bring(connection, event.message());
        return;
      case v1::ServerEvent::kClosed:
        core_->OnClosed(connection->id());
        return;
      case v1::ServerEvent::kAnnounce:
        *directive.mutable_announce() = event.announce();
        Tell(directive);
        return;
      case v1::ServerEvent::kCommit:
        *directive.mutable_commit() = event.commit();
        // Parts of checkpoints are files.
        directive.mutable_commit()->mutable_plan()->clear_cut();
        // One that cannot be is not acknowledged.
        core_->OnDirective(directive);
        return;
      case v1::ServerEvent::kAbort:
        *directive.mutable_abort() = event.abort();
        core_->OnDirective(directive);
        return;
      case v1::ServerEvent::EVENT_NOT_SET:
        return;
    }
  }

  // Returns when all of it has been done.
  void Settle() {
    v1::Directive announce;
    announce.mutable_announce()->set_generation(1);  // Is in force, or is over.
    Tell(announce);
  }

 private:
  void Bring(const std::shared_ptr<CountingConnection>& connection, const std::string& bytes) {
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer message(&slice, 1);
    // What cannot be decoded is answered with what can be known of it.
    const absl::StatusOr<DecodedRequest> request = DecodeRequest(message);
    v1::ExchangeRequest header;
    connection->Ask(request.ok() ? request->header.request_id() : 0);
    core_->OnMessage(connection, message);
  }

  // An announcement, which is always acknowledged; all that came before it has been done then.
  void Tell(const v1::Directive& directive) {
    const int before = reports();
    core_->OnDirective(directive);
    MutexLock lock(mu_);
    while (reports_ == before) {
      RUBATO_FUZZ_CHECK(changed_.WaitFor(mu_, kPatience), "no acknowledgement of: " + directive.ShortDebugString());
    }
  }
  int reports() {
    MutexLock lock(mu_);
    return reports_;
  }
  void OnReport(const v1::TaskMessage& message) {
    RUBATO_FUZZ_CHECK(message.has_announce_ack() || message.has_plan_ack(), message.ShortDebugString());
    if (!message.has_announce_ack()) return;
    MutexLock lock(mu_);
    ++reports_;
    changed_.NotifyAll();
  }

  RealClock clock_;
  Logger log_{"fuzzer", &clock_};
  const std::vector<std::shared_ptr<CountingConnection>> connections_ = {std::make_shared<CountingConnection>(1),
                                                                         std::make_shared<CountingConnection>(2)};
  Mutex mu_;
  CondVar changed_;
  int reports_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<ServerCore> core_;
};

}  // namespace
}  // namespace rubato::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rubato::v1::ServerEvents input;
  if (!input.ParseFromArray(data, static_cast<int>(size))) return 0;
  rubato::server::Run run;
  const int count = std::min(input.events_size(), rubato::server::kEventsMax);
  for (int i = 0; i < count; ++i) run.Do(input.events(i));
  run.Settle();
  return 0;
}
