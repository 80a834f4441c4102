#include "worker/backend_choice.h"

#include <utility>

#include "absl/strings/str_cat.h"
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
    default:
      return MatrixPrecision::kFloat32;
  }
}

// training.cards of them, from training.device_index on. FailedPrecondition: there is none that can be used.
absl::StatusOr<ChosenBackend> ChooseCards(const v1::TrainingConfig& config,
                                          const std::function<std::shared_ptr<void>(size_t bytes)>& sending_memory,
                                          const BackendMakers& makers) {
  CudaBackendOptions options = {.device_index = static_cast<int>(config.device_index()),
                                .precision = PrecisionOf(config.precision()),
                                .sending_memory = sending_memory,
                                .graphs = !config.no_cuda_graphs(),
                                .cudnn = !config.no_cudnn(),
                                .fused_attention = !config.no_fused_attention()};
  ChosenBackend chosen;
  RUBATO_ASSIGN_OR_RETURN(chosen.backend, makers.cuda(options));
  chosen.description = chosen.backend->Name();
  chosen.precision = config.precision();
  for (uint32_t card = 1; card < config.cards(); ++card) {
    ++options.device_index;
    absl::StatusOr<std::unique_ptr<Backend>> peer = makers.cuda(options);
    if (!peer.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("training.cards: value ", config.cards(), " with device_index ",
                                                     config.device_index(), ": ", peer.status().message()));
    }
    absl::StrAppend(&chosen.description, " and ", (*peer)->Name());
    chosen.peers.push_back(*std::move(peer));
  }
  absl::StrAppend(&chosen.description, ", ", v1::TrainingConfig::Precision_Name(config.precision()));
  return chosen;
}

}  // namespace

absl::StatusOr<ChosenBackend> ChooseBackend(const v1::TrainingConfig& config,
                                            std::function<std::shared_ptr<void>(size_t bytes)> sending_memory,
                                            const BackendMakers& makers) {
  std::string why;
  if (config.device() != v1::TrainingConfig::CPU) {
    absl::StatusOr<ChosenBackend> chosen = ChooseCards(config, sending_memory, makers);
    if (chosen.ok()) return chosen;
    if (config.device() == v1::TrainingConfig::CUDA) return Annotate(chosen.status(), "training.device: CUDA");
    if (!absl::IsFailedPrecondition(chosen.status())) return Annotate(chosen.status(), "training.device: AUTO");
    why = std::string(chosen.status().message());
  }
  CpuBackendOptions options;
  options.compute_threads = static_cast<int>(config.compute_threads());
  options.sending_memory = std::move(sending_memory);
  ChosenBackend chosen;
  RUBATO_ASSIGN_OR_RETURN(chosen.backend, makers.cpu(options));
  chosen.description = absl::StrCat(chosen.backend->Name(), ", ", options.compute_threads,
                                    options.compute_threads == 1 ? " thread" : " threads");
  if (!why.empty()) absl::StrAppend(&chosen.description, ": ", why);
  return chosen;
}

}  // namespace rubato::worker
