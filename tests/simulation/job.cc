#include "tests/simulation/job.h"

#include <algorithm>

#include "tests/simulation/sim_push.h"

namespace rubato::simulation {

namespace {

constexpr int64_t kChunkElements = 64;

// Its chunks are those of the other model.
void MakeClientJob(const Scenario& scenario, v1::JobConfig* config) {
  v1::Manifest* manifest = config->mutable_model()->mutable_manifest();
  manifest->set_groups(kGroups);
  manifest->add_tensors()->set_name("weight");
  manifest->mutable_tensors(0)->add_shape(kChunkElements * std::max<int64_t>(scenario.chunks - 1, 1));
  manifest->add_tensors()->set_name("bias");
  manifest->mutable_tensors(1)->set_group(GroupOf(scenario.chunks - 1, scenario.chunks));
  config->mutable_data()->mutable_client();
  if (scenario.own) {
    config->mutable_data()->set_dispatch(v1::DataConfig::OWN);
    config->mutable_data()->clear_shard_examples();
    config->mutable_training()->clear_epochs();
  } else {
    config->mutable_data()->mutable_client()->set_train_examples(TrainExamples(scenario));
  }
}

void MakeLayers(const Scenario& scenario, v1::ModelConfig* model) {
  // One unit: its bias is a chunk, and the weights are the others.
  const int64_t inputs = kChunkElements * std::max<int64_t>(scenario.chunks - 1, 1);
  model->add_input_shape(inputs - (scenario.shards > 0 ? kKeysPerExample * kRowDimension : 0));
  if (scenario.shards > 0) *model->add_tables() = MakeTable(scenario);
  v1::LayerConfig* layer = model->add_layers();
  layer->set_name("linear0");
  layer->mutable_linear()->set_units(1);
  model->set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
}

}  // namespace

int64_t TrainExamples(const Scenario& scenario) { return scenario.examples > 0 ? scenario.examples : kManyExamples; }

v1::JobConfig MakeJobConfig(const Scenario& scenario) {
  v1::JobConfig config;
  config.set_name("simulation");
  config.set_seed(scenario.seed);
  config.mutable_cluster()->set_servers(scenario.servers);
  config.mutable_cluster()->set_partitions_per_server(scenario.partitions);
  config.mutable_cluster()->set_workers(scenario.workers);
  config.mutable_cluster()->set_chunk_bytes(kChunkElements * sizeof(float));
  config.mutable_cluster()->set_lease_seconds(absl::ToDoubleSeconds(scenario.lease));
  config.mutable_cluster()->set_server_grace_seconds(absl::ToDoubleSeconds(scenario.server_grace));
  config.mutable_cluster()->set_start_timeout_seconds(1e6);
  config.mutable_cluster()->set_wait_timeout_seconds(1e6);
  if (!scenario.clients) MakeLayers(scenario, config.mutable_model());
  *config.mutable_optimizer() = MakeOptimizer(scenario);
  config.mutable_data()->set_dispatch(v1::DataConfig::DYNAMIC);
  config.mutable_data()->set_shard_examples(kShardExamples);
  config.mutable_consistency()->set_mode(scenario.start.mode);
  config.mutable_consistency()->set_policy(v1::ConsistencyConfig::SCHEDULE);
  config.mutable_consistency()->set_staleness_bound(scenario.start.staleness_bound);
  config.mutable_consistency()->set_quorum(scenario.start.quorum);
  config.mutable_checkpoint()->set_every_steps(scenario.cut_steps);
  config.mutable_checkpoint()->set_every_seconds(absl::ToDoubleSeconds(scenario.cut_interval));
  config.mutable_checkpoint()->set_keep(scenario.keep_cuts);
  config.mutable_training()->set_epochs(scenario.examples > 0 ? 1 : 1000);
  config.mutable_training()->set_batch_size(8);
  if (scenario.clients) MakeClientJob(scenario, &config);
  return config;
}

ModelSpec MakeModelSpec(const v1::JobConfig& config) { return BuildModelSpec(config.model()).value(); }

}  // namespace rubato::simulation
