#ifndef RUBATO_WORKER_DEVICE_MEMORY_PLAN_H_
#define RUBATO_WORKER_DEVICE_MEMORY_PLAN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "kernels/backend.h"
#include "proto/job_config.pb.h"

namespace rubato::worker {

// Memory that a worker needs, in bytes, known before any of it is allocated.
struct MemoryPlan {
  // On the device.
  int64_t weights = 0;
  int64_t gradients = 0;
  // Outputs of layers, the gradients of their inputs, and what they keep for the backward pass.
  int64_t activations = 0;
  // Of the batch that is computed, and of the one after it.
  int64_t inputs = 0;
  // What the largest operation takes while it runs, and what the backend and its libraries take for themselves.
  int64_t workspace = 0;
  // If the device encodes gradients: their encoded form, and the error-feedback residuals; chunks' rounding left out.
  int64_t encoded = 0;
  // With several GPUs, where gradients of the others arrive.
  int64_t exchange = 0;
  // What local SGD keeps.
  int64_t local = 0;

  // On the host: copies of weights, gradients and their encoded form if it does not reach the device's, and batches
  // that are prepared ahead.
  int64_t staging = 0;
  int64_t batches = 0;

  int64_t OnDevice() const {
    return weights + gradients + activations + inputs + workspace + encoded + exchange + local;
  }
  int64_t OnHost() const { return staging + batches; }
};

// Examples that one of so many GPUs, or the CPU, computes at a time: its share of the largest of
// training.micro_batches, of the largest batch that a plan may give the worker.
int64_t LargestMicroBatch(const v1::JobConfig& config, int gpus);

// For a complete and valid config (common/config), and for the first of so many GPUs, or the CPU: the others take
// less. `staged`: the host does not reach the device's memory. InvalidArgument: more bytes than an int64 counts.
absl::StatusOr<MemoryPlan> PlanMemory(const v1::JobConfig& config, const ModelSpec& spec, const WorkspaceRules& rules,
                                      bool staged, int gpus = 1);

// Plans for this backend, compares with what it has and reserves it there; returns the plan as a line for the log, in
// MiB. ResourceExhausted: it does not fit, with the largest training.batch_size that would. Also the errors of
// PlanMemory, Backend::Memory and Backend::Reserve.
absl::StatusOr<std::string> FitMemory(const v1::JobConfig& config, const ModelSpec& spec, Backend* backend,
                                      int gpus = 1);

// The same for an evaluator, whose model is that of training on one device, with batches of evaluation.batch_size,
// which the refusal names.
absl::StatusOr<std::string> FitEvaluation(const v1::JobConfig& config, const ModelSpec& spec, Backend* backend);

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DEVICE_MEMORY_PLAN_H_
