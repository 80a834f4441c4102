#include "tests/simulation/job.h"

#include <algorithm>

namespace rubato::simulation {

int64_t TrainExamples(const Scenario& scenario) { return scenario.examples > 0 ? scenario.examples : kManyExamples; }

v1::JobConfig MakeJobConfig(const Scenario& scenario) {
  constexpr int64_t kChunkElements = 64;
  v1::JobConfig config;
  config.set_name("simulation");
  config.mutable_cluster()->set_servers(scenario.servers);
  config.mutable_cluster()->set_partitions_per_server(scenario.partitions);
  config.mutable_cluster()->set_workers(scenario.workers);
  config.mutable_cluster()->set_chunk_bytes(kChunkElements * sizeof(float));
  config.mutable_cluster()->set_lease_seconds(absl::ToDoubleSeconds(scenario.lease));
  config.mutable_cluster()->set_server_grace_seconds(absl::ToDoubleSeconds(scenario.server_grace));
  config.mutable_cluster()->set_start_timeout_seconds(1e6);
  config.mutable_cluster()->set_wait_timeout_seconds(1e6);
  // One unit: its bias is a chunk, and the weights are the others.
  const int64_t inputs = kChunkElements * std::max<int64_t>(scenario.chunks - 1, 1);
  config.mutable_model()->add_input_shape(inputs);
  v1::LayerConfig* layer = config.mutable_model()->add_layers();
  layer->set_name("linear0");
  layer->mutable_linear()->set_units(1);
  config.mutable_model()->set_loss(v1::ModelConfig::MEAN_SQUARED_ERROR);
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
  return config;
}

}  // namespace rubato::simulation
