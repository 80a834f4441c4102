#ifndef RUBATO_WORKER_DEVICE_BACKEND_CHOICE_H_
#define RUBATO_WORKER_DEVICE_BACKEND_CHOICE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "kernels/cpu/cpu_backend.h"
#include "proto/job_config.pb.h"

namespace rubato::worker {

struct ChosenBackend {
  std::unique_ptr<Backend> backend;
  // Of the other GPUs, if there are several.
  std::vector<std::unique_ptr<Backend>> peers;
  // What computes, and why if that was not said: for the log.
  std::string description;
  // Why it is not the GPU that is seen, and what that means; for the log. Empty: there is nothing to warn of.
  std::string warning;
  // FP32 on the CPU, whatever the config asks for on a GPU.
  v1::TrainingConfig::Precision precision = v1::TrainingConfig::FP32;
};

// How backends are made. A program's GPUs are those of kernels/backend_cuda.h; this library does not link them, so
// that a test can have emulated ones, or none.
struct BackendFactory {
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(const CpuBackendOptions&)> cpu = CreateCpuBackend;
  // As CreateCudaBackend and CountCudaDevices. Required.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(const CudaBackendOptions&)> cuda;
  std::function<absl::StatusOr<int>()> count_gpus;
};

// What training.device and its companions ask for. `sending_memory` is where gradients are put that peers on this host
// read; it may be empty.
// FailedPrecondition: CUDA was asked for, and this is what is missing. InvalidArgument: there are GPUs, and not as
// many as training.device_index and training.gpus ask for. Otherwise as the backends' own functions: AUTO takes the
// CPU if there is no GPU, or none that this program can use, and not if one does not work.
absl::StatusOr<ChosenBackend> ChooseBackend(const v1::TrainingConfig& config,
                                            std::function<std::shared_ptr<void>(size_t bytes)> sending_memory,
                                            const BackendFactory& factory);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DEVICE_BACKEND_CHOICE_H_
