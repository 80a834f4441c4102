#include "bench/sparse/rubato_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "bench/job_server.h"
#include "common/clock.h"
#include "common/float_buffer.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/shared_memory/arena.h"
#include "common/shared_memory/blocks.h"
#include "common/status.h"
#include "coordinator/rules/placement.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/ps_client/ps_client.h"

namespace rubato::bench {
namespace {

struct RowsJob {
  v1::JobConfig config;
  ModelSpec model;
  v1::JobDescription description;
  v1::Plan plan;
};

v1::TaskId TheWorker() {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_incarnation(1);
  return task;
}

v1::ModelConfig ModelWithTable(const SparseSetup& setup) {
  v1::ModelConfig model;
  model.add_input_shape(1);
  v1::TableConfig* const table = model.add_tables();
  table->set_name("rows");
  table->set_dimension(setup.dimension);
  table->set_algorithm(v1::TableConfig::ADAGRAD);
  table->set_learning_rate(kLearningRate);
  table->set_epsilon(kEpsilon);
  table->set_initial_bound(0);
  table->set_shards(setup.shards);
  table->set_memory_bytes(uint64_t{1} << 36);
  if (setup.bf16) {
    table->set_precision(v1::TableConfig::BF16);
    table->set_push(v1::BF16);
    table->set_pull(v1::BF16);
  }
  v1::LinearLayer* const layer = model.add_layers()->mutable_linear();
  layer->set_units(1);
  layer->set_no_bias(true);
  model.set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
  FillTableDefaults(model.mutable_tables());
  return model;
}

absl::StatusOr<RowsJob> MakeJob(const SparseSetup& setup, const v1::ServerInfo& server) {
  RowsJob job;
  job.config.set_name("sparse_push_pull_bench");
  job.config.set_seed(kJobSeed);
  v1::ClusterConfig* const cluster = job.config.mutable_cluster();
  cluster->set_servers(1);
  cluster->set_workers(1);
  cluster->set_partitions_per_server(setup.partitions);
  cluster->set_connections_per_server(1);
  cluster->set_chunk_bytes(512 << 10);
  if (!setup.shared_memory) cluster->set_shared_memory(v1::ClusterConfig::OFF);
  *job.config.mutable_model() = ModelWithTable(setup);
  job.config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  job.config.mutable_optimizer()->set_learning_rate(kLearningRate);
  job.config.mutable_consistency()->set_mode(v1::ASYNC);
  RUBATO_ASSIGN_OR_RETURN(job.model, BuildModelSpec(job.config.model()));
  job.description.set_fingerprint(1);
  *job.description.add_servers() = server;
  RUBATO_ASSIGN_OR_RETURN(std::vector<v1::ChunkPlacement> chunks,
                          coordinator::SplitIntoChunks(job.model, cluster->chunk_bytes()));
  coordinator::PlaceChunks({0}, setup.partitions, &chunks);
  job.description.mutable_chunks()->Add(chunks.begin(), chunks.end());
  job.plan.set_generation(1);
  job.plan.set_mode(v1::ASYNC);
  *job.plan.add_members() = TheWorker();
  return job;
}

class RubatoRows : public RowClient, private worker::PsClient::TensorMemory {
 public:
  explicit RubatoRows(RowsJob job) : job_(std::move(job)), weights_(NumElements(job_.model.tensors.front().shape)) {}

  // FailedPrecondition: memory is not shared though it is to be, or the other way round.
  absl::Status Start(bool shared_memory) {
    const auto elements = static_cast<int64_t>(weights_.size());
    gradient_ = FloatBuffer::Allocate(elements);
    if (shared_memory) {
      RUBATO_ASSIGN_OR_RETURN(arena_, SharedArena::Create("worker 0", kRowRoomBytes + (size_t{1} << 20)));
      void* const memory = arena_->Allocate(weights_.size() * sizeof(float));
      gradient_ = FloatBuffer::Wrap(static_cast<float*>(memory), elements, arena_);
    }
    std::fill_n(gradient_->data(), elements, 1.0f);
    worker::PsClient::Options options;
    options.job = job_.description;
    options.task = TheWorker();
    options.tensors = {job_.model.tensors.front().name};
    options.tables = job_.model.tables;
    options.seed = job_.config.seed();
    options.wait_timeout = absl::Seconds(60);
    options.clock = &clock_;
    options.log = &log_;
    options.memory = this;
    options.arena = arena_;
    client_ = std::make_unique<worker::PsClient>(std::move(options));
    client_->Start(job_.plan);
    RUBATO_RETURN_IF_ERROR(Await());
    if (client_->uses_shared_memory() == shared_memory) return absl::OkStatus();
    return absl::FailedPreconditionError(shared_memory ? "client and server share no memory"
                                                       : "client and server share memory");
  }

  absl::Status Exchange(const std::vector<uint64_t>& pushed, const std::vector<float>& gradients,
                        const std::vector<uint64_t>& asked) override {
    worker::Parameters::Step step;
    RUBATO_ASSIGN_OR_RETURN(const bool begun, client_->BeginStep(&step));
    if (!begun) return absl::InternalError("the plan has changed");
    const uint64_t examples = pushed.empty() ? 0 : 1;
    client_->PushTensor(0, {.examples = examples});
    client_->AskRows(0, asked);
    client_->PushRows(0, pushed, gradients, {.examples = examples});
    return Await();
  }

  const float* rows() override { return client_->rows(0); }

  int64_t payload_bytes() override {
    const worker::PsClient::Counters counters = client_->counters();
    return counters.sent_bytes + counters.received_bytes;
  }

 private:
  absl::Status Await() {
    // Rows first, as they are the model's input.
    RUBATO_ASSIGN_OR_RETURN(const bool rows, client_->AwaitRows(0));
    RUBATO_ASSIGN_OR_RETURN(const bool tensor, client_->AwaitTensor(0));
    return tensor && rows ? absl::OkStatus() : absl::InternalError("the plan has changed");
  }

  float* Weights(int, int64_t offset) override { return weights_.data() + offset; }
  float* Gradient(int, int64_t offset) override { return gradient_->data() + offset; }

  const RowsJob job_;
  // Null: all goes over TCP.
  std::shared_ptr<SharedArena> arena_;
  std::vector<float> weights_;
  FloatBuffer::Ptr gradient_;
  RealClock clock_;
  Logger log_{"worker 0", &clock_};
  std::unique_ptr<worker::PsClient> client_;
};

}  // namespace

absl::Status ServeRubatoRows(const SparseSetup& setup, const std::function<void(const std::string& address)>& ready) {
  RUBATO_ASSIGN_OR_RETURN(const RowsJob job, MakeJob(setup, TheServer()));
  return ServeJob(job.config, job.description, job.plan,
                  [&ready](const v1::ServerInfo& info) { ready(info.ShortDebugString()); });
}

absl::StatusOr<std::unique_ptr<RowClient>> ConnectRubatoRows(const SparseSetup& setup, const std::string& address) {
  RUBATO_ASSIGN_OR_RETURN(const v1::ServerInfo server, ParseServerInfo(address));
  RUBATO_ASSIGN_OR_RETURN(RowsJob job, MakeJob(setup, server));
  auto client = std::make_unique<RubatoRows>(std::move(job));
  RUBATO_RETURN_IF_ERROR(client->Start(setup.shared_memory));
  return client;
}

}  // namespace rubato::bench
