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

}  // namespace

absl::StatusOr<ChosenBackend> ChooseBackend(const v1::TrainingConfig& config,
                                            std::function<std::shared_ptr<void>(size_t bytes)> sending_memory,
                                            const BackendMakers& makers) {
  std::string why;
  if (config.device() != v1::TrainingConfig::CPU) {
    absl::StatusOr<std::unique_ptr<Backend>> backend =
        makers.cuda({.device_index = static_cast<int>(config.device_index()),
                     .precision = PrecisionOf(config.precision()),
                     .sending_memory = sending_memory});
    if (backend.ok()) {
      std::string description =
          absl::StrCat((*backend)->Name(), ", ", v1::TrainingConfig::Precision_Name(config.precision()));
      return ChosenBackend{*std::move(backend), std::move(description), config.precision()};
    }
    if (config.device() == v1::TrainingConfig::CUDA) return Annotate(backend.status(), "training.device: CUDA");
    if (!absl::IsFailedPrecondition(backend.status())) return Annotate(backend.status(), "training.device: AUTO");
    why = std::string(backend.status().message());
  }
  CpuBackendOptions options;
  options.compute_threads = static_cast<int>(config.compute_threads());
  options.sending_memory = std::move(sending_memory);
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Backend> backend, makers.cpu(options));
  std::string description = absl::StrCat(backend->Name(), ", ", options.compute_threads,
                                         options.compute_threads == 1 ? " thread" : " threads");
  if (!why.empty()) absl::StrAppend(&description, ": ", why);
  return ChosenBackend{std::move(backend), std::move(description), v1::TrainingConfig::FP32};
}

}  // namespace rubato::worker
