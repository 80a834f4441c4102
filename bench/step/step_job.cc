#include "bench/step/step_job.h"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/rules/placement.h"

namespace rubato::bench {
namespace {

v1::ModelConfig MnistPerceptron() {
  v1::ModelConfig model;
  model.add_input_shape(784);
  for (int64_t units : {512, 512}) {
    model.add_layers()->mutable_linear()->set_units(units);
    model.add_layers()->mutable_relu();
  }
  model.add_layers()->mutable_linear()->set_units(10);
  model.set_loss(v1::ModelConfig::SOFTMAX_CROSS_ENTROPY);
  for (v1::LayerConfig& layer : *model.mutable_layers()) {
    if (layer.has_linear()) layer.mutable_linear()->set_weight_initializer(v1::HE_NORMAL);
  }
  return model;
}

}  // namespace

v1::TaskId StepWorker(uint32_t index) {
  v1::TaskId task;
  task.set_role(v1::TaskId::WORKER);
  task.set_index(index);
  task.set_incarnation(index + 1);
  return task;
}

absl::StatusOr<StepJob> MakeStepJob(const StepSetup& setup, const v1::ServerInfo& server) {
  StepJob job;
  job.config.set_name("step_bench");
  v1::ClusterConfig* cluster = job.config.mutable_cluster();
  cluster->set_servers(1);
  cluster->set_workers(setup.workers);
  cluster->set_partitions_per_server(setup.partitions);
  cluster->set_connections_per_server(1);
  cluster->set_chunk_bytes(setup.chunk_bytes);
  cluster->set_message_bytes(setup.message_bytes);
  cluster->set_shared_memory(setup.shared_memory ? v1::ClusterConfig::AUTO : v1::ClusterConfig::OFF);
  *job.config.mutable_model() = MnistPerceptron();
  job.config.mutable_optimizer()->set_algorithm(v1::OptimizerConfig::MOMENTUM);
  // Small: the batches are noise, and nothing is to overflow.
  job.config.mutable_optimizer()->set_learning_rate(1e-3);
  job.config.mutable_optimizer()->set_momentum(0.9);
  job.config.mutable_consistency()->set_mode(v1::SYNC);
  job.config.mutable_training()->set_batch_size(setup.batch);
  job.config.mutable_training()->set_micro_batches(1);
  RUBATO_ASSIGN_OR_RETURN(job.model, BuildModelSpec(job.config.model()));
  job.description.set_fingerprint(1);
  *job.description.add_servers() = server;
  RUBATO_ASSIGN_OR_RETURN(std::vector<v1::ChunkPlacement> chunks,
                          coordinator::SplitIntoChunks(job.model, setup.chunk_bytes));
  coordinator::PlaceChunks({0}, setup.partitions, &chunks);
  job.description.mutable_chunks()->Add(chunks.begin(), chunks.end());
  job.plan.set_generation(1);
  job.plan.set_mode(v1::SYNC);
  for (int i = 0; i < setup.workers; ++i) *job.plan.add_members() = StepWorker(i);
  return job;
}

absl::Status PinProcess(const std::vector<int>& cores) {
  if (cores.empty()) return absl::OkStatus();
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof(set), &set) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("--cores: ", std::strerror(errno)));
}

}  // namespace rubato::bench
