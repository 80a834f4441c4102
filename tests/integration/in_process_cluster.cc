#include "tests/integration/in_process_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/compression.h"
#include "worker/ps_client/host_encoder.h"

namespace rubato {
namespace {

absl::StatusOr<std::unique_ptr<ExchangeServer>> Listen(const std::string& address, ExchangeServer::Handler* handler) {
  ExchangeServer::Options options;
  options.listen = address;
  return ExchangeServer::Create(std::move(options), handler);
}

}  // namespace

FakeModel::FakeModel(const ModelSpec& spec, bool shared_memory) {
  if (shared_memory) {
    auto created = SharedArena::Create("model", 1 << 22);
    EXPECT_TRUE(created.ok()) << created.status();
    arena = *std::move(created);
  }
  for (const TensorSpec& tensor : spec.tensors) {
    const int64_t elements = NumElements(tensor.shape);
    weights.emplace_back(elements);
    if (arena == nullptr) {
      gradients.push_back(FloatBuffer::Allocate(elements));
    } else {
      gradients.push_back(
          FloatBuffer::Wrap(static_cast<float*>(arena->Allocate(elements * sizeof(float))), elements, arena));
    }
  }
}

InProcessCluster::InProcessCluster(Options options) : options_(std::move(options)) {
  const int servers = options_.servers;
  config_.set_name("test");
  config_.set_seed(3);
  config_.mutable_cluster()->set_servers(servers);
  config_.mutable_cluster()->set_workers(options_.workers);
  config_.mutable_cluster()->set_partitions_per_server(2);
  config_.mutable_model()->add_input_shape(40);
  config_.mutable_model()->add_layers()->mutable_linear()->set_units(30);
  config_.mutable_model()->add_layers()->mutable_linear()->set_units(10);
  config_.mutable_model()->mutable_layers(0)->set_name("a");
  config_.mutable_model()->mutable_layers(1)->set_name("b");
  config_.mutable_model()->set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
  config_.mutable_model()->mutable_tables()->Add(options_.tables.begin(), options_.tables.end());
  FillTableDefaults(config_.mutable_model()->mutable_tables());
  config_.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::MOMENTUM);
  config_.mutable_optimizer()->set_learning_rate(0.1);
  if (options_.optimizer.learning_rate() > 0) *config_.mutable_optimizer() = options_.optimizer;
  *config_.mutable_compression() = options_.compression;
  absl::StatusOr<ModelSpec> model = BuildModelSpec(config_.model());
  EXPECT_TRUE(model.ok()) << model.status();
  model_ = *model;

  job_.set_fingerprint(77);
  constexpr int64_t kChunk = 256;
  uint32_t next = 0;
  for (size_t tensor = 0; tensor < model_.tensors.size(); ++tensor) {
    const int64_t elements = NumElements(model_.tensors[tensor].shape);
    for (int64_t offset = 0; offset < elements; offset += kChunk, ++next) {
      v1::ChunkPlacement* chunk = job_.add_chunks();
      chunk->set_tensor(tensor);
      chunk->set_offset(offset);
      chunk->set_length(std::min(kChunk, elements - offset));
      chunk->set_server(next % servers);
      chunk->set_partition(next / servers % 2);
    }
  }
  for (size_t table = 0; table < model_.tables.size(); ++table) {
    for (uint32_t shard = 0; shard < model_.tables[table].config.shards(); ++shard, ++next) {
      v1::ChunkPlacement* chunk = job_.add_chunks();
      chunk->set_tensor(static_cast<uint32_t>(model_.tensors.size() + table));
      chunk->set_offset(shard);
      chunk->set_server(next % servers);
      chunk->set_partition(next / servers % 2);
    }
  }
  for (int i = 0; i < servers; ++i) StartServer(i);
  for (auto& server : servers_) EXPECT_TRUE(server->core->StartJob(job_).ok());
  v1::Plan plan;
  plan.set_generation(1);
  plan.set_mode(options_.mode);
  plan.set_staleness_bound(options_.staleness_bound);
  for (int i = 0; i < options_.workers; ++i) *plan.add_members() = Worker(i);
  Commit(plan);
}

void InProcessCluster::StartServer(int index) {
  auto server = std::make_unique<Server>();
  server::ServerCore::Options options;
  options.config = config_;
  options.task.set_role(v1::TaskId::SERVER);
  options.task.set_index(index);
  options.task.set_incarnation(100 + index);
  options.clock = &clock_;
  options.log = &log_;
  options.report = [this](v1::TaskMessage message) { OnReport(std::move(message)); };
  v1::ServerInfo* info = job_.add_servers();
  *info->mutable_task() = options.task;
  if (options_.shared_memory) {
    auto arena = SharedArena::Create("server", 1 << 22);
    EXPECT_TRUE(arena.ok()) << arena.status();
    server->arena = *std::move(arena);
    SharedMemoryListener::Options listener;
    listener.offered = server->arena->shared_region();
    listener.clock = &clock_;
    listener.log = &log_;
    auto shared = SharedMemoryListener::Create(std::move(listener));
    EXPECT_TRUE(shared.ok()) << shared.status();
    server->shared = *std::move(shared);
    options.arena = server->arena;
    options.shared = server->shared.get();
    *info->mutable_shared_memory() = server->shared->address();
  }
  auto core = server::ServerCore::Create(options);
  EXPECT_TRUE(core.ok()) << core.status();
  server->core = *std::move(core);
  auto transport = Listen("127.0.0.1:0", server.get());
  EXPECT_TRUE(transport.ok()) << transport.status();
  server->transport = *std::move(transport);
  info->set_address(absl::StrCat("127.0.0.1:", server->transport->port()));
  servers_.push_back(std::move(server));
}

InProcessCluster::~InProcessCluster() {
  for (auto& server : servers_) server->transport->Shutdown();
}

v1::TaskId InProcessCluster::Worker(uint32_t index) {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(index);
  task.set_incarnation(index + 1);
  return task;
}

worker::PsClient::Options InProcessCluster::ClientOptions(uint32_t worker, FakeModel* model) {
  worker::PsClient::Options options;
  options.job = job_;
  options.task = Worker(worker);
  for (const TensorSpec& tensor : model_.tensors) options.tensors.push_back(tensor.name);
  options.tables = model_.tables;
  options.seed = config_.seed();
  options.message_bytes = 1500;
  options.wait_timeout = absl::Seconds(30);
  options.clock = &clock_;
  options.log = &log_;
  options.memory = model;
  options.arena = model->arena;
  options.connections_per_server = options_.connections_per_server;
  worker::HostEncoder::Options encoding = {.seed = config_.seed(), .worker = worker, .arena = model->arena};
  for (const TensorSpec& tensor : model_.tensors) {
    const v1::CodecConfig codec = PushCodec(config_, tensor.name);
    encoding.codecs.push_back({codec.codec(), codec.fraction()});
  }
  options.encoder = std::make_shared<worker::HostEncoder>(job_, encoding);
  return options;
}

v1::Plan InProcessCluster::plan() {
  MutexLock lock(mu_);
  return plan_;
}

std::vector<v1::LostWorker> InProcessCluster::lost() {
  MutexLock lock(mu_);
  return lost_;
}

void InProcessCluster::OnReport(v1::TaskMessage message) {
  MutexLock lock(mu_);
  if (message.has_announce_ack()) {
    ++announce_acks_;
    highest_begun_ = std::max(highest_begun_, message.announce_ack().highest_started_step());
  }
  if (message.has_plan_ack()) ++plan_acks_;
  lost_.insert(lost_.end(), message.plan_ack().lost().begin(), message.plan_ack().lost().end());
  changed_.NotifyAll();
}

void InProcessCluster::SendToAll(const v1::Directive& directive) {
  for (auto& server : servers_) server->core->OnDirective(directive);
}

void InProcessCluster::Commit(const v1::Plan& plan) {
  v1::Directive directive;
  *directive.mutable_commit()->mutable_plan() = plan;
  {
    MutexLock lock(mu_);
    plan_ = plan;
    plan_acks_ = 0;
    lost_.clear();
  }
  SendToAll(directive);
  MutexLock lock(mu_);
  while (plan_acks_ < static_cast<int>(servers_.size())) changed_.Wait(mu_);
}

void InProcessCluster::Switch(v1::Mode mode, int64_t staleness_bound) {
  v1::Plan plan = this->plan();
  plan.set_generation(plan.generation() + 1);
  plan.set_amendment(0);
  plan.set_mode(mode);
  plan.set_staleness_bound(staleness_bound);
  v1::Directive announce;
  announce.mutable_announce()->set_generation(plan.generation());
  {
    MutexLock lock(mu_);
    announce_acks_ = 0;
  }
  SendToAll(announce);
  {
    MutexLock lock(mu_);
    while (announce_acks_ < static_cast<int>(servers_.size())) changed_.Wait(mu_);
    plan.set_first_step(highest_begun_ + 1);
  }
  Commit(plan);
}

void InProcessCluster::Evict(uint32_t worker) {
  v1::Plan plan = this->plan();
  plan.set_amendment(plan.amendment() + 1);
  auto* members = plan.mutable_members();
  members->erase(
      std::remove_if(members->begin(), members->end(), [&](const v1::TaskId& task) { return task.index() == worker; }),
      members->end());
  Commit(plan);
}

void InProcessCluster::BreakConnections(int server) {
  const std::string address = job_.servers(server).address();
  servers_[server]->transport.reset();
  auto transport = Listen(address, servers_[server].get());
  ASSERT_TRUE(transport.ok()) << transport.status();
  servers_[server]->transport = *std::move(transport);
}

}  // namespace rubato
