#include "cli/launch/gpu_assignment.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rubato {

bool TakesTurns(const v1::TrainingConfig& training) {
  return training.device() != v1::TrainingConfig::CPU && !training.has_device_index();
}

std::optional<uint32_t> AssignedGpu(const v1::TrainingConfig& training, uint32_t gpus, uint32_t turn) {
  if (!TakesTurns(training) || gpus < 2) return std::nullopt;
  const uint32_t each = std::max(1u, training.gpus());
  return turn % std::max(1u, gpus / each) * each;
}

std::string GpuProblem(uint32_t found, uint32_t needed) {
  if (found >= needed) return "";
  if (found == 0) return "it has no GPU, and training.device is CUDA";
  return absl::StrCat("it has ", found, " of the ", needed, " GPUs that training.gpus takes");
}

}  // namespace rubato
