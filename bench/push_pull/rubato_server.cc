#include "bench/push_pull/rubato_server.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "bench/job_server.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

// The default of cluster.chunk_bytes.
constexpr int64_t kChunkBytes = 512 << 10;
// cluster.message_bytes. Over TCP the server works on one part of a tensor while the next is in flight. In shared
// memory nothing is in flight, and fewer messages cost less.
constexpr int64_t kTcpMessageBytes = 512 << 10;
constexpr int64_t kShmMessageBytes = 4 << 20;

// A chain of square layers, each with one tensor of `setup.size` bytes.
absl::StatusOr<v1::ModelConfig> MakeModel(const Setup& setup) {
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(setup.floats()))));
  if (side * side != setup.floats()) {
    return absl::InvalidArgumentError(absl::StrCat("--sizes: ", setup.size, " bytes are not a square of float32"));
  }
  v1::ModelConfig model;
  model.add_input_shape(side);
  for (int64_t chunk = 0; chunk < setup.chunks(); ++chunk) {
    v1::LinearLayer* layer = model.add_layers()->mutable_linear();
    layer->set_units(side);
    layer->set_no_bias(true);
    layer->set_weight_initializer(v1::ZEROS);
  }
  model.set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
  return model;
}

}  // namespace

std::vector<std::string> RubatoJob::TensorNames() const {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : model.tensors) names.push_back(tensor.name);
  return names;
}

v1::TaskId RubatoWorker() {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_incarnation(1);
  return task;
}

absl::StatusOr<RubatoJob> MakeRubatoJob(const Setup& setup, v1::ClusterConfig::SharedMemory shared_memory,
                                        const v1::ServerInfo& server) {
  RubatoJob job;
  job.config.set_name(kJobName);
  job.config.mutable_security()->set_credentials(setup.credentials);
  v1::ClusterConfig* cluster = job.config.mutable_cluster();
  cluster->set_servers(1);
  cluster->set_workers(1);
  cluster->set_partitions_per_server(1);
  cluster->set_connections_per_server(1);
  const int64_t chunk_bytes = std::min(setup.size, kChunkBytes);
  cluster->set_chunk_bytes(chunk_bytes);
  const bool is_tcp = shared_memory == v1::ClusterConfig::OFF;
  cluster->set_message_bytes(std::min(setup.size, is_tcp ? kTcpMessageBytes : kShmMessageBytes));
  job.message_chunks = static_cast<int>(cluster->message_bytes() / chunk_bytes);
  cluster->set_shared_memory(shared_memory);
  RUBATO_ASSIGN_OR_RETURN(*job.config.mutable_model(), MakeModel(setup));
  job.config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::SGD);
  job.config.mutable_optimizer()->set_learning_rate(1);
  job.config.mutable_consistency()->set_mode(v1::ASYNC);
  RUBATO_ASSIGN_OR_RETURN(job.model, BuildModelSpec(job.config.model()));

  job.description.set_fingerprint(1);
  *job.description.add_servers() = server;
  const int64_t length = chunk_bytes / static_cast<int64_t>(sizeof(float));
  for (int64_t tensor = 0; tensor < setup.chunks(); ++tensor) {
    for (int64_t offset = 0; offset < setup.floats(); offset += length) {
      v1::ChunkPlacement* placement = job.description.add_chunks();
      placement->set_tensor(tensor);
      placement->set_offset(offset);
      placement->set_length(length);
    }
  }
  job.plan.set_generation(1);
  job.plan.set_mode(v1::ASYNC);
  *job.plan.add_members() = RubatoWorker();
  return job;
}

absl::Status ServeRubatoJob(const Setup& setup, v1::ClusterConfig::SharedMemory shared_memory, const Ready& ready) {
  RUBATO_ASSIGN_OR_RETURN(const RubatoJob job, MakeRubatoJob(setup, shared_memory, TheServer()));
  return ServeJob(job.config, job.description, job.plan,
                  [&ready](const v1::ServerInfo& info) { ready(info.ShortDebugString()); });
}

}  // namespace rubato::bench
