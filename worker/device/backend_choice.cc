#include "worker/device/backend_choice.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/proto_enum.h"
#include "common/status.h"

namespace rubato::worker {
namespace {

MatrixPrecision PrecisionOf(v1::TrainingConfig::Precision precision) {
  switch (precision) {
    case v1::TrainingConfig::TF32:
      return MatrixPrecision::kTf32;
    case v1::TrainingConfig::BF16:
      return MatrixPrecision::kBf16;
    case v1::TrainingConfig::FP16:
      return MatrixPrecision::kFp16;
    case v1::TrainingConfig::FP32:
    case v1::TrainingConfig::PRECISION_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::TrainingConfig_Precision_TrainingConfig_Precision) : break;
  }
  return MatrixPrecision::kFloat32;
}

// training.gpus of them, from training.device_index on. FailedPrecondition: there is none that can be used.
absl::StatusOr<ChosenBackend> ChooseGpus(const v1::TrainingConfig& config,
                                         const std::function<std::shared_ptr<void>(size_t bytes)>& sending_memory,
                                         const BackendFactory& factory) {
  CudaBackendOptions options = {.device_index = static_cast<int>(config.device_index()),
                                .precision = PrecisionOf(config.precision()),
                                .sending_memory = sending_memory,
                                .graphs = !config.no_cuda_graphs(),
                                .cudnn = !config.no_cudnn(),
                                .fused_attention = !config.no_fused_attention()};
  ChosenBackend chosen;
  RUBATO_ASSIGN_OR_RETURN(chosen.backend, factory.cuda(options));
  chosen.description = chosen.backend->Name();
  chosen.precision = config.precision();
  for (uint32_t gpu = 1; gpu < config.gpus(); ++gpu) {
    ++options.device_index;
    absl::StatusOr<std::unique_ptr<Backend>> peer = factory.cuda(options);
    if (!peer.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("training.gpus: value ", config.gpus(), " with device_index ",
                                                     config.device_index(), ": ", peer.status().message()));
    }
    absl::StrAppend(&chosen.description, " and ", (*peer)->Name());
    chosen.peers.push_back(*std::move(peer));
  }
  absl::StrAppend(&chosen.description, ", ", v1::TrainingConfig::Precision_Name(config.precision()));
  return chosen;
}

// Why AUTO takes the CPU although there is a GPU, and what that changes.
std::string CpuWarning(const v1::TrainingConfig& config, const std::string& why) {
  std::string warning = absl::StrCat("training.device: AUTO takes the CPU, because the GPU cannot be used: ", why);
  if (config.precision() != v1::TrainingConfig::FP32) {
    absl::StrAppend(&warning, "; training.precision is ", v1::TrainingConfig::Precision_Name(config.precision()),
                    ", and the CPU computes in FP32");
  }
  return warning;
}

}  // namespace

absl::StatusOr<ChosenBackend> ChooseBackend(const v1::TrainingConfig& config,
                                            std::function<std::shared_ptr<void>(size_t bytes)> sending_memory,
                                            const BackendFactory& factory) {
  ChosenBackend chosen;
  std::string why;
  if (config.device() != v1::TrainingConfig::CPU) {
    absl::StatusOr<ChosenBackend> gpus = ChooseGpus(config, sending_memory, factory);
    if (gpus.ok()) return gpus;
    const bool is_auto = config.device() == v1::TrainingConfig::AUTO;
    if (!absl::IsFailedPrecondition(gpus.status()) || !is_auto) {
      return Annotate(gpus.status(), is_auto ? "training.device: AUTO" : "training.device: CUDA");
    }
    why = std::string(gpus.status().message());
    const absl::StatusOr<int> seen = factory.count_gpus();
    if (seen.ok() && *seen > 0 && static_cast<int>(config.device_index()) >= *seen) {
      return absl::InvalidArgumentError(absl::StrCat("training.device_index: value ", config.device_index(),
                                                     "; allowed: 0 to ", *seen - 1, ", the GPUs of this machine"));
    }
    if (!seen.ok() || *seen > 0) chosen.warning = CpuWarning(config, why);
  }
  CpuBackendOptions options;
  options.compute_threads = static_cast<int>(config.compute_threads());
  options.sending_memory = std::move(sending_memory);
  RUBATO_ASSIGN_OR_RETURN(chosen.backend, factory.cpu(options));
  chosen.description = absl::StrCat(chosen.backend->Name(), ", ", options.compute_threads,
                                    options.compute_threads == 1 ? " thread" : " threads");
  if (!why.empty()) absl::StrAppend(&chosen.description, ": ", why);
  return chosen;
}

}  // namespace rubato::worker
