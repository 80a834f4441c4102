#include "common/config/validate.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/config/awaited_model.h"
#include "common/config/limits.h"
#include "common/config/local_sgd.h"
#include "common/config/validate_parts.h"
#include "common/http/listen_address.h"

namespace rubato {
namespace {

constexpr size_t kMaxNameLength = 128;

void ValidateName(const v1::JobConfig& config, ErrorList* errors) {
  const std::string& name = config.name();
  const bool good_letters =
      std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; });
  if (name.empty() || name.size() > kMaxNameLength || !good_letters) {
    errors->Add("name", absl::StrCat("\"", absl::CHexEscape(name), "\""),
                absl::StrCat("1 to ", kMaxNameLength, " letters, digits, '-' and '_'"));
  }
}

void CheckBytes(absl::string_view path, uint64_t value, bool good_multiple, absl::string_view allowed,
                ErrorList* errors) {
  if (value < 4096 || value > kMaxChunkBytes || !good_multiple) errors->Add(path, absl::StrCat(value), allowed);
}

void ValidateCluster(const v1::ClusterConfig& cluster, ErrorList* errors) {
  errors->CheckInteger("cluster.servers", cluster.servers(), 1, 1024);
  errors->CheckInteger("cluster.workers", cluster.workers(), 1, 1024);
  errors->CheckInteger("cluster.evaluators", cluster.evaluators(), 0, 1);
  CheckBytes("cluster.chunk_bytes", cluster.chunk_bytes(), cluster.chunk_bytes() % 64 == 0,
             "4096 (4 KiB) to 67108864 (64 MiB), a multiple of 64", errors);
  CheckBytes("cluster.message_bytes", cluster.message_bytes(), true, "4096 (4 KiB) to 67108864 (64 MiB)", errors);
  errors->CheckInteger("cluster.partitions_per_server", cluster.partitions_per_server(), 1, 64);
  const double lease = cluster.lease_seconds();
  errors->CheckNumber("cluster.lease_seconds", lease, lease >= 0.2 && lease <= 3600, "0.2 to 3600 (1 h)");
  const double start = cluster.start_timeout_seconds();
  errors->CheckNumber("cluster.start_timeout_seconds", start, start >= 1 && start <= 86400, "1 to 86400 (24 h)");
  const double wait = cluster.wait_timeout_seconds();
  errors->CheckNumber("cluster.wait_timeout_seconds", wait, wait >= 1 && wait <= 86400, "1 to 86400 (24 h)");
  if (cluster.shared_memory() != v1::ClusterConfig::AUTO && cluster.shared_memory() != v1::ClusterConfig::OFF) {
    errors->Add("cluster.shared_memory", absl::StrCat(static_cast<int>(cluster.shared_memory())), "AUTO, OFF");
  }
  errors->CheckInteger("cluster.connections_per_server", cluster.connections_per_server(), 1, 16);
  const double grace = cluster.server_grace_seconds();
  errors->CheckNumber("cluster.server_grace_seconds", grace, grace >= 0 && grace <= 86400, "0 to 86400 (24 h)");
}

void ValidateCheckpoint(const v1::JobConfig& config, ErrorList* errors) {
  const v1::CheckpointConfig& checkpoint = config.checkpoint();
  errors->CheckInteger("checkpoint.every_steps", checkpoint.every_steps(), 0, int64_t{1} << 53);
  const double every = checkpoint.every_seconds();
  errors->CheckNumber("checkpoint.every_seconds", every, every >= 0 && every <= 30 * 86400, "0 to 2592000 (30 days)");
  errors->CheckInteger("checkpoint.keep", checkpoint.keep(), 1, 1000);
  const uint32_t servers = std::max(config.cluster().servers(), 1u);
  if (checkpoint.copies() < 1 || checkpoint.copies() > servers) {
    errors->Add("checkpoint.copies", absl::StrCat(checkpoint.copies()),
                absl::StrCat("1 to ", servers, " (cluster.servers)"));
  }
  if (checkpoint.directory().find('\0') != std::string::npos) {
    errors->Add("checkpoint.directory", absl::CHexEscape(checkpoint.directory()), "a path without a zero byte");
  }
}

void ValidateDevice(const v1::TrainingConfig& training, ErrorList* errors) {
  errors->CheckInteger("training.device_index", training.device_index(), 0, 1023);
  const v1::TrainingConfig::Device device = training.device();
  if (!v1::TrainingConfig::Device_IsValid(device) || device == v1::TrainingConfig::DEVICE_UNSPECIFIED) {
    errors->Add("training.device", absl::StrCat(device), "AUTO, CPU, CUDA");
  }
  const v1::TrainingConfig::Precision precision = training.precision();
  if (!v1::TrainingConfig::Precision_IsValid(precision) || precision == v1::TrainingConfig::PRECISION_UNSPECIFIED) {
    errors->Add("training.precision", absl::StrCat(precision), "FP32, TF32, BF16, FP16");
  } else if (device == v1::TrainingConfig::CPU && precision != v1::TrainingConfig::FP32) {
    errors->Add("training.precision", v1::TrainingConfig::Precision_Name(precision), "FP32 if training.device is CPU");
  }
}

void ValidateGpus(const v1::JobConfig& config, ErrorList* errors) {
  const v1::TrainingConfig& training = config.training();
  if (training.gpus() == 1) return;
  const std::string value = absl::StrCat(training.gpus());
  if (training.device() == v1::TrainingConfig::CPU) errors->Add("training.gpus", value, "1 if training.device is CPU");
  if (TrainsLocally(config)) errors->Add("training.gpus", value, "1 if " + WhyLocal(config));
  const int64_t examples = training.batch_size() / std::max<int64_t>(1, training.micro_batches());
  errors->CheckInteger("training.gpus", training.gpus(), 1, std::clamp<int64_t>(examples, 1, 64));
}

void ValidateLossScale(const v1::TrainingConfig& training, ErrorList* errors) {
  if (!training.has_loss_scale()) return;
  if (training.precision() != v1::TrainingConfig::FP16) {
    errors->Add("training.loss_scale", "present", "absent unless training.precision is FP16");
  }
  const double initial = training.loss_scale().initial();
  int exponent = 0;
  errors->CheckNumber("training.loss_scale.initial", initial,
                      initial >= 1 && initial <= 0x1p24 && std::frexp(initial, &exponent) == 0.5,
                      "a power of two, 1 to 16777216");
  errors->CheckInteger("training.loss_scale.growth_steps", training.loss_scale().growth_steps(), 1,
                       (int64_t{1} << 31) - 1);
}

// When the job ends.
void ValidateLength(const v1::JobConfig& config, ErrorList* errors) {
  const v1::TrainingConfig& training = config.training();
  errors->CheckInteger("training.epochs", training.epochs(), 0, (int64_t{1} << 31) - 1);
  errors->CheckInteger("training.max_steps", training.max_steps(), 0, int64_t{1} << 53);
  if (AwaitsModel(config)) return;
  if (config.data().dispatch() == v1::DataConfig::OWN) {
    if (training.epochs() != 0) {
      errors->Add("training.epochs", absl::StrCat(training.epochs()), "absent if data.dispatch is OWN");
    }
  } else if (training.epochs() == 0 && training.max_steps() == 0) {
    errors->Add("training.epochs", "0", "1 or more, unless training.max_steps is 1 or more");
  }
}

void ValidateTraining(const v1::JobConfig& config, ErrorList* errors) {
  const v1::TrainingConfig& training = config.training();
  errors->CheckInteger("training.batch_size", training.batch_size(), IsClientJob(config) ? 0 : 1, kMaxBatch);
  ValidateLength(config, errors);
  if (training.micro_batches() < 1 || training.micro_batches() > std::max<int64_t>(1, training.batch_size())) {
    errors->Add("training.micro_batches", absl::StrCat(training.micro_batches()),
                absl::StrCat("1 to training.batch_size, ", training.batch_size()));
  }
  errors->CheckInteger("training.compute_threads", training.compute_threads(), 1, 1024);
  errors->CheckInteger("training.trace_steps", training.trace_steps(), 0, 10000);
  if (training.start_from().find('\0') != std::string::npos) {
    errors->Add("training.start_from", absl::CHexEscape(training.start_from()), "a path without a zero byte");
  }
  const double clip = training.clip_norm();
  errors->CheckNumber("training.clip_norm", clip, clip == 0 || (clip >= 1e-30 && clip <= 1e30),
                      "1e-30 to 1e30, or 0 for no clipping");
  errors->CheckInteger("training.trace_after_steps", training.trace_after_steps(), 0, int64_t{1} << 53);
  const double step = training.step_timeout_seconds();
  errors->CheckNumber("training.step_timeout_seconds", step, step >= 1 && step <= 86400, "1 to 86400 (24 h)");
  ValidateDevice(training, errors);
  ValidateLossScale(training, errors);
}

// A job has one target at most, of what its evaluations measure. `model` as in ValidateData.
void ValidateTargets(const ModelSpec* model, const v1::JobConfig& config, ErrorList* errors) {
  const v1::EvaluationConfig& evaluation = config.evaluation();
  const double accuracy = evaluation.target_accuracy(), auc = evaluation.target_auc(), rmse = evaluation.target_rmse();
  errors->CheckNumber("evaluation.target_accuracy", accuracy, accuracy >= 0 && accuracy <= 1, "0 to 1 (0: no target)");
  errors->CheckNumber("evaluation.target_auc", auc, auc >= 0 && auc <= 1, "0 to 1 (0: no target)");
  errors->CheckNumber("evaluation.target_rmse", rmse, rmse >= 0, "a number >= 0 (0: no target)");
  absl::string_view first;
  const auto check = [&](absl::string_view field, double target, bool is_measured, absl::string_view otherwise) {
    // Also if it is no target at all, as said above.
    if (!(target > 0)) return;
    if (config.cluster().evaluators() == 0) errors->Add(field, NumberText(target), "0 if cluster.evaluators is 0");
    if (!is_measured) errors->Add(field, NumberText(target), otherwise);
    if (!first.empty()) errors->Add(field, NumberText(target), absl::StrCat("0 with ", first));
    first = field;
  };
  const bool is_regression = config.model().loss() == v1::ModelConfig::MEAN_SQUARED_ERROR;
  check("evaluation.target_accuracy", accuracy, !is_regression, "0 if model.loss is MEAN_SQUARED_ERROR");
  check("evaluation.target_auc", auc, model == nullptr || model->has_two_classes(),
        "0 unless there are two classes: BINARY_CROSS_ENTROPY, or SOFTMAX_CROSS_ENTROPY over 2");
  check("evaluation.target_rmse", rmse, is_regression, "0 unless model.loss is MEAN_SQUARED_ERROR");
}

void ValidateEvaluation(const ModelSpec* model, const v1::JobConfig& config, ErrorList* errors) {
  const v1::EvaluationConfig& evaluation = config.evaluation();
  const double every = evaluation.every_epochs();
  errors->CheckNumber("evaluation.every_epochs", every, every > 0, "a number > 0");
  errors->CheckInteger("evaluation.batch_size", evaluation.batch_size(), 1, kMaxBatch);
  const int64_t recall_at = evaluation.recall_at();
  const bool has_softmax = config.model().loss() == v1::ModelConfig::SOFTMAX_CROSS_ENTROPY;
  if (recall_at != 0 && !has_softmax) {
    errors->Add("evaluation.recall_at", absl::StrCat(recall_at), "0 unless model.loss is SOFTMAX_CROSS_ENTROPY");
  } else if (recall_at != 0 && model != nullptr) {
    errors->CheckInteger("evaluation.recall_at", recall_at, 0, model->output.back());
  }
  ValidateTargets(model, config, errors);
}

void ValidateObservability(const v1::ObservabilityConfig& observability, ErrorList* errors) {
  errors->CheckInteger("observability.histogram_every_steps", observability.histogram_every_steps(), 0,
                       int64_t{1} << 53);
  const v1::ObservabilityConfig::LogFormat format = observability.log_format();
  if (format != v1::ObservabilityConfig::TEXT && format != v1::ObservabilityConfig::JSON) {
    errors->Add("observability.log_format", absl::StrCat(format), "TEXT, JSON");
  }
  const std::string& page = observability.page_address();
  if (!page.empty() && !ParseListenAddress(page).ok()) {
    errors->Add("observability.page_address", absl::StrCat("\"", absl::CHexEscape(page), "\""),
                "\"host:port\" with a port from 0 to 65535");
  }
}

}  // namespace

absl::Status ValidateJobConfig(const v1::JobConfig& config) {
  ErrorList errors;
  ValidateName(config, &errors);
  if (config.run_directory().find('\0') != std::string::npos) {
    errors.Add("run_directory", absl::CHexEscape(config.run_directory()), "a path without a zero byte");
  }
  ValidateCluster(config.cluster(), &errors);
  ValidateCheckpoint(config, &errors);
  absl::StatusOr<ModelSpec> model = absl::UnknownError("awaited");
  if (!AwaitsModel(config)) {
    model = BuildModelSpec(config.model());
    if (!model.ok()) errors.AddLines(model.status().message());
    // A client's model has no shapes that data would have to fit.
    ValidateData(model.ok() && !config.model().has_manifest() ? &*model : nullptr, config, &errors);
    ValidateOptimizer(model.ok() ? &*model : nullptr, config, &errors);
  }
  if (IsClientJob(config)) ValidateClientJob(config, &errors);
  if (!config.model().tables().empty() || !config.model().manifest().tables().empty()) ValidateTables(config, &errors);
  ValidateConsistency(config, &errors);
  ValidateTraining(config, &errors);
  ValidateGpus(config, &errors);
  ValidateEvaluation(model.ok() ? &*model : nullptr, config, &errors);
  ValidateCompression(model.ok() ? &*model : nullptr, config, &errors);
  ValidateObservability(config.observability(), &errors);
  return errors.ToStatus();
}

}  // namespace rubato
