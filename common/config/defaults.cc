#include "common/config/defaults.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/codec_traits.h"
#include "common/config/limits.h"
#include "common/config/local_sgd.h"
#include "common/model_spec.h"
#include "common/optimizer_traits.h"

namespace rubato {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;
// The most that data.shard_examples may be.
constexpr int64_t kMaxShardExamples = std::numeric_limits<int32_t>::max();

// The default of a field if it is absent: FILL(cluster, servers, 1). A written 0 is left to validation.
#define FILL(message, field, default_value)                               \
  do {                                                                    \
    if (!(message)->has_##field()) (message)->set_##field(default_value); \
  } while (false)

void FillCluster(bool whole_tensors, v1::ClusterConfig* cluster) {
  FILL(cluster, servers, 1);
  FILL(cluster, chunk_bytes, whole_tensors ? kMaxChunkBytes : kMiB / 2);
  FILL(cluster, message_bytes, 1 * kMiB);
  FILL(cluster, partitions_per_server, 2);
  FILL(cluster, lease_seconds, 5);
  FILL(cluster, start_timeout_seconds, 60);
  FILL(cluster, wait_timeout_seconds, 600);
  FILL(cluster, shared_memory, v1::ClusterConfig::AUTO);
  FILL(cluster, connections_per_server, 1);
  FILL(cluster, server_grace_seconds, 30);
}

void FillCheckpoint(v1::CheckpointConfig* checkpoint) {
  FILL(checkpoint, every_seconds, checkpoint->every_steps() > 0 ? 0 : 300);
  FILL(checkpoint, keep, 2);
  FILL(checkpoint, copies, 1);
}

// Ten steps. A batch size that is out of range is an error of its own. Clients need not say it: then so many that a
// worker asks some twenty times an epoch.
int64_t DefaultShard(const v1::JobConfig& config) {
  int64_t examples = ExamplesPerStep(config);
  if (config.data().has_client() && examples == 0) {
    const int64_t workers = std::max(config.cluster().workers(), 1u);
    examples = config.data().client().train_examples() / (200 * workers);
  }
  return std::min(10 * std::clamp<int64_t>(examples, 1, kMaxShardExamples), kMaxShardExamples);
}

void FillColumns(v1::ColumnsData* columns) {
  if (columns->separator().empty()) columns->set_separator(",");
  for (v1::FeatureColumn& feature : *columns->mutable_features()) FILL(&feature, standard_deviation, 1);
}

void FillData(int64_t shard_examples, v1::DataConfig* data) {
  const bool own = data->has_client() && data->client().train_examples() == 0;
  FILL(data, dispatch, own ? v1::DataConfig::OWN : v1::DataConfig::DYNAMIC);
  if (data->dispatch() != v1::DataConfig::OWN) FILL(data, shard_examples, shard_examples);
  FILL(data, prefetch_batches, 4);
  FILL(data, prefetch_threads, 1);
  FILL(data, memory_bytes, uint64_t{1} << 30);
  if (data->has_idx()) FILL(data->mutable_idx(), standard_deviation, 1);
  if (data->has_cifar() && data->cifar().mean().empty()) data->mutable_cifar()->add_mean(0);
  if (data->has_cifar() && data->cifar().standard_deviation().empty()) data->mutable_cifar()->add_standard_deviation(1);
  if (data->has_text()) FILL(data->mutable_text(), test_fraction, 0.1);
  if (data->has_teacher()) FILL(data->mutable_teacher(), hidden_units, 64);
  if (data->has_clicks()) {
    FILL(data->mutable_clicks(), keys, 100'000);
    FILL(data->mutable_clicks(), exponent, 1.05);
  }
  if (data->has_columns()) FillColumns(data->mutable_columns());
}

void FillOptimizer(v1::OptimizerConfig* optimizer) {
  for (const OptimizerParameter* parameter : ParametersOf(optimizer->algorithm())) {
    (optimizer->*parameter->set)(ParameterOf(*optimizer, *parameter));
  }
  v1::LearningRateSchedule* schedule = optimizer->mutable_schedule();
  if (schedule->unit() == v1::LearningRateSchedule::UNIT_UNSPECIFIED) {
    schedule->set_unit(v1::LearningRateSchedule::EPOCHS);
  }
  if (schedule->kind_case() == v1::LearningRateSchedule::KIND_NOT_SET) schedule->mutable_constant();
  if (schedule->has_polynomial()) {
    FILL(schedule->mutable_polynomial(), power, 1);
  }
}

void FillPace(v1::PolicyPace* pace) {
  FILL(pace, window_steps, 50);
  FILL(pace, window_seconds, 5);
  FILL(pace, windows_agreeing, 3);
  FILL(pace, windows_of_rest, 20);
  FILL(pace, changes_max, 6);
}

void Fill(v1::QuorumPolicy* policy) {
  FILL(policy, share_min, 0.75);
  FILL(policy, gain_min, 0.1);
}

void Fill(v1::SyncThenAsyncPolicy* policy) {
  FILL(policy, share, 0.5);
  FILL(policy, then, v1::ASYNC);
  FILL(policy, gain_min, 0.1);
  FILL(policy, cost_max, 0.03);
}

void Fill(v1::BalancePolicy* policy) {
  FILL(policy, imbalance_min, 0.05);
  FILL(policy, batch_max, 2);
}

void Fill(v1::StragglerPolicy* policy) {
  FILL(policy, deviations, 1);
  FILL(policy, gain_min, 0.1);
  FILL(policy, share_min, 0.5);
}

void Fill(v1::DsspPolicy* policy) {
  FILL(policy, bound_min, 3);
  FILL(policy, bound_max, 15);
  FILL(policy, gain_min, 0.1);
}

void Fill(v1::StalenessBudgetPolicy* policy) {
  FILL(policy, room, 0.5);
  FILL(policy, bound_max, 16);
  FILL(policy, gain_min, 0.1);
}

void Fill(v1::PostLocalPolicy* policy) {
  FILL(policy, sync_every, 16);
  FILL(policy, rate_factor, 0.5);
  FILL(policy, gain_min, 0.1);
  FILL(policy, cost_max, 0.03);
}

void Fill(v1::AdaCommPolicy* policy) {
  FILL(policy, sync_every_min, 1);
  FILL(policy, interval_windows, 12);
  FILL(policy, decay, 0.5);
  FILL(policy, gain_min, 0.1);
}

// The settings of the policy that is chosen, if it has any.
void FillPolicy(v1::ConsistencyConfig* consistency) {
  const auto fill = [consistency](auto* policy) {
    FillPace(consistency->mutable_policy_pace());
    Fill(policy);
  };
  const v1::ConsistencyConfig::Policy policy = consistency->policy();
  if (policy == v1::ConsistencyConfig::QUORUM) fill(consistency->mutable_quorum_policy());
  if (policy == v1::ConsistencyConfig::SYNC_THEN_ASYNC) fill(consistency->mutable_sync_then_async());
  if (policy == v1::ConsistencyConfig::BALANCE) fill(consistency->mutable_balance());
  if (policy == v1::ConsistencyConfig::STRAGGLER) fill(consistency->mutable_straggler());
  if (policy == v1::ConsistencyConfig::DSSP) fill(consistency->mutable_dssp());
  if (policy == v1::ConsistencyConfig::STALENESS_BUDGET) fill(consistency->mutable_staleness_budget());
  if (policy == v1::ConsistencyConfig::POST_LOCAL) fill(consistency->mutable_post_local());
  if (policy == v1::ConsistencyConfig::ADACOMM) fill(consistency->mutable_adacomm());
}

// `local`: with local SGD.
void FillCompensation(bool local, v1::CompensationConfig* compensation) {
  if (compensation->has_dc_asgd())
    FILL(compensation->mutable_dc_asgd(), lambda, compensation->dc_asgd().adaptive() ? 2 : 0.04);
  if (compensation->has_delayed_nesterov()) {
    FILL(compensation->mutable_delayed_nesterov(), momentum, 0.9);
    if (local) FILL(compensation->mutable_delayed_nesterov(), learning_rate, 0.7);
  }
}

void FillConsistency(v1::JobConfig* config) {
  v1::ConsistencyConfig* consistency = config->mutable_consistency();
  FILL(consistency, on_non_finite, v1::ConsistencyConfig::SKIP_STEP);
  FILL(consistency, sync_every, 1);
  FILL(consistency, policy, v1::ConsistencyConfig::SCHEDULE);
  FillPolicy(consistency);
  if (consistency->has_compensation()) {
    FillCompensation(TrainsLocally(*config), consistency->mutable_compensation());
  }
}

void FillCodec(v1::CodecConfig* codec) {
  const CodecTraits& traits = TraitsOf(codec->codec());
  if (traits.takes_fraction()) FILL(codec, fraction, traits.default_fraction);
}

void FillCompression(v1::CompressionConfig* compression) {
  if (!compression->has_push()) compression->mutable_push()->set_codec(v1::NONE);
  if (!compression->has_pull()) compression->mutable_pull()->set_codec(v1::NONE);
  FillCodec(compression->mutable_push());
  FillCodec(compression->mutable_pull());
  for (int i = 0; i < compression->tensors_size(); ++i) {
    v1::TensorCompression* entry = compression->mutable_tensors(i);
    if (entry->has_push()) FillCodec(entry->mutable_push());
    if (entry->has_pull()) FillCodec(entry->mutable_pull());
  }
}

}  // namespace

void FillDefaults(v1::JobConfig* config) {
  FillDefaultsBesideModel(config);
  FillLayerDefaults(config->mutable_model()->mutable_layers());
  FillTableDefaults(config->mutable_model()->mutable_tables());
  FillOptimizer(config->mutable_optimizer());
  FillData(DefaultShard(*config), config->mutable_data());
}

void FillDefaultsBesideModel(v1::JobConfig* config) {
  if (config->run_directory().empty()) config->set_run_directory(absl::StrCat("runs/", config->name()));
  FillCluster(NeedsWholeTensors(config->optimizer().algorithm()), config->mutable_cluster());
  FillConsistency(config);
  FillCompression(config->mutable_compression());
  FillCheckpoint(config->mutable_checkpoint());
  v1::TrainingConfig* training = config->mutable_training();
  FILL(training, micro_batches, 1);
  FILL(training, compute_threads, 1);
  FILL(training, gpus, 1);
  FILL(training, device, v1::TrainingConfig::AUTO);
  FILL(training, precision, v1::TrainingConfig::FP32);
  FILL(training, step_timeout_seconds, std::max(1.0, config->cluster().wait_timeout_seconds() / 2));
  if (training->precision() == v1::TrainingConfig::FP16 || training->has_loss_scale()) {
    FILL(training->mutable_loss_scale(), initial, 65536);
    FILL(training->mutable_loss_scale(), growth_steps, 2000);
  }
  v1::EvaluationConfig* evaluation = config->mutable_evaluation();
  FILL(evaluation, every_epochs, 1);
  FILL(evaluation, batch_size, 500);
  FILL(config->mutable_observability(), log_format, v1::ObservabilityConfig::TEXT);
}

#undef FILL

}  // namespace rubato
