#include "common/config/defaults.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/codec_traits.h"
#include "common/config/local_sgd.h"
#include "common/model_spec.h"
#include "common/optimizer_traits.h"

namespace rubato {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;
// The most that data.shard_examples may be.
constexpr int64_t kMaxShardExamples = std::numeric_limits<int32_t>::max();

// Calls set(default) where a number is absent.
class Filler {
 public:
  explicit Filler(const FieldPaths& written) : written_(written) {}

  template <typename Value, typename Set>
  void Fill(absl::string_view path, Value value, Set set) const {
    if (value == Value{} && written_.count(std::string(path)) == 0) set();
  }

 private:
  const FieldPaths& written_;
};

// FILL(filler, "cluster", cluster, servers, 1): cluster->servers becomes 1 where "cluster.servers" is absent.
#define FILL(filler, path, message, field, default_value) \
  filler.Fill(JoinFieldPath(path, #field), message->field(), [&] { message->set_##field(default_value); })

void FillCluster(const Filler& filler, v1::ClusterConfig* cluster) {
  FILL(filler, "cluster", cluster, servers, 1);
  FILL(filler, "cluster", cluster, chunk_bytes, kMiB / 2);
  FILL(filler, "cluster", cluster, message_bytes, 1 * kMiB);
  FILL(filler, "cluster", cluster, partitions_per_server, 2);
  FILL(filler, "cluster", cluster, lease_seconds, 5);
  FILL(filler, "cluster", cluster, start_timeout_seconds, 60);
  FILL(filler, "cluster", cluster, wait_timeout_seconds, 600);
  FILL(filler, "cluster", cluster, shared_memory, v1::ClusterConfig::AUTO);
  FILL(filler, "cluster", cluster, connections_per_server, 1);
}

void FillData(const Filler& filler, int64_t examples_per_step, v1::DataConfig* data) {
  FILL(filler, "data", data, dispatch, v1::DataConfig::DYNAMIC);
  // Ten steps. A batch size that is out of range is an error of its own.
  FILL(filler, "data", data, shard_examples,
       std::min(10 * std::clamp<int64_t>(examples_per_step, 1, kMaxShardExamples), kMaxShardExamples));
  FILL(filler, "data", data, prefetch_batches, 4);
  FILL(filler, "data", data, prefetch_threads, 1);
  if (!data->has_memory_bytes()) data->set_memory_bytes(uint64_t{1} << 30);
  if (data->has_idx()) FILL(filler, "data.idx", data->mutable_idx(), standard_deviation, 1);
  if (data->has_cifar() && data->cifar().mean().empty()) data->mutable_cifar()->add_mean(0);
  if (data->has_cifar() && data->cifar().standard_deviation().empty()) data->mutable_cifar()->add_standard_deviation(1);
  if (data->has_text()) FILL(filler, "data.text", data->mutable_text(), test_fraction, 0.1);
  if (data->has_teacher()) FILL(filler, "data.teacher", data->mutable_teacher(), hidden_units, 64);
}

void FillOptimizer(const Filler& filler, v1::OptimizerConfig* optimizer) {
  for (const OptimizerParameter* parameter : ParametersOf(optimizer->algorithm())) {
    (optimizer->*parameter->set)(ParameterOf(*optimizer, *parameter));
  }
  v1::LearningRateSchedule* schedule = optimizer->mutable_schedule();
  if (schedule->unit() == v1::LearningRateSchedule::UNIT_UNSPECIFIED) {
    schedule->set_unit(v1::LearningRateSchedule::EPOCHS);
  }
  if (schedule->kind_case() == v1::LearningRateSchedule::KIND_NOT_SET) schedule->mutable_constant();
  if (schedule->has_polynomial()) {
    FILL(filler, "optimizer.schedule.polynomial", schedule->mutable_polynomial(), power, 1);
  }
}

void FillConsistency(const Filler& filler, v1::ConsistencyConfig* consistency) {
  FILL(filler, "consistency", consistency, on_non_finite, v1::ConsistencyConfig::SKIP_STEP);
  FILL(filler, "consistency", consistency, sync_every, 1);
  FILL(filler, "consistency", consistency, policy, v1::ConsistencyConfig::SCHEDULE);
  for (int i = 0; i < consistency->schedule_size(); ++i) {
    v1::ScheduledSwitch* entry = consistency->mutable_schedule(i);
    FILL(filler, absl::StrCat("consistency.schedule[", i, "]"), entry, learning_rate_scale, 1);
  }
}

void FillCodec(const Filler& filler, const std::string& path, v1::CodecConfig* codec) {
  const CodecTraits& traits = TraitsOf(codec->codec());
  if (traits.takes_fraction()) FILL(filler, path, codec, fraction, traits.default_fraction);
}

void FillCompression(const Filler& filler, v1::CompressionConfig* compression) {
  if (!compression->has_push()) compression->mutable_push()->set_codec(v1::NONE);
  if (!compression->has_pull()) compression->mutable_pull()->set_codec(v1::NONE);
  FillCodec(filler, "compression.push", compression->mutable_push());
  FillCodec(filler, "compression.pull", compression->mutable_pull());
  for (int i = 0; i < compression->tensors_size(); ++i) {
    v1::TensorCompression* entry = compression->mutable_tensors(i);
    const std::string path = absl::StrCat("compression.tensors[", i, "]");
    if (entry->has_push()) FillCodec(filler, path + ".push", entry->mutable_push());
    if (entry->has_pull()) FillCodec(filler, path + ".pull", entry->mutable_pull());
  }
}

}  // namespace

void FillDefaults(const FieldPaths& written, v1::JobConfig* config) {
  const Filler filler(written);
  if (config->run_directory().empty()) config->set_run_directory(absl::StrCat("runs/", config->name()));
  FillCluster(filler, config->mutable_cluster());
  FillLayerDefaults(config->mutable_model()->mutable_layers());
  FillOptimizer(filler, config->mutable_optimizer());
  FillConsistency(filler, config->mutable_consistency());
  FillData(filler, ExamplesPerStep(*config), config->mutable_data());
  FillCompression(filler, config->mutable_compression());
  v1::TrainingConfig* training = config->mutable_training();
  FILL(filler, "training", training, micro_batches, 1);
  FILL(filler, "training", training, compute_threads, 1);
  FILL(filler, "training", training, gpus, 1);
  FILL(filler, "training", training, device, v1::TrainingConfig::AUTO);
  FILL(filler, "training", training, precision, v1::TrainingConfig::FP32);
  FILL(filler, "training", training, step_timeout_seconds, std::max(1.0, config->cluster().wait_timeout_seconds() / 2));
  if (training->precision() == v1::TrainingConfig::FP16 || training->has_loss_scale()) {
    FILL(filler, "training.loss_scale", training->mutable_loss_scale(), initial, 65536);
    FILL(filler, "training.loss_scale", training->mutable_loss_scale(), growth_steps, 2000);
  }
  v1::EvaluationConfig* evaluation = config->mutable_evaluation();
  FILL(filler, "evaluation", evaluation, every_epochs, 1);
  FILL(filler, "evaluation", evaluation, batch_size, 500);
  FILL(filler, "observability", config->mutable_observability(), log_format, v1::ObservabilityConfig::TEXT);
}

#undef FILL

}  // namespace rubato
