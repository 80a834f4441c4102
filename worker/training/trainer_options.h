#ifndef RUBATO_WORKER_TRAINING_TRAINER_OPTIONS_H_
#define RUBATO_WORKER_TRAINING_TRAINER_OPTIONS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/trace/trace_recorder.h"
#include "proto/job_config.pb.h"
#include "worker/device/step_watchdog.h"
#include "worker/nn/replicated_model.h"
#include "worker/ps_client/parameters.h"
#include "worker/training/batch_source.h"
#include "worker/training/local_optimizer.h"
#include "worker/training/loss_scaler.h"
#include "worker/training/slowdown.h"
#include "worker/training/tensor_reporter.h"

namespace rubato::worker {

// What a trainer works with. Everything outlives it.
struct TrainerOptions {
  const v1::JobConfig* config = nullptr;
  const ModelSpec* spec = nullptr;
  ReplicatedModel* model = nullptr;
  Parameters* parameters = nullptr;
  BatchSource* source = nullptr;
  // Local SGD. Null if a step is one batch.
  LocalOptimizer* local = nullptr;
  uint32_t worker = 0;
  // Slows down each step that has a batch. May be null.
  Slowdown* slowdown = nullptr;
  Clock* clock = nullptr;
  Logger* log = nullptr;
  // May be null. If the config asks for a trace, the trainer enables it for the steps in question and writes its
  // file.
  TraceRecorder* trace = nullptr;
  // The device rounds to binary16, so the loss is scaled. Otherwise null.
  LossScaler* scaler = nullptr;
  // Is told when the device is waited for. May be null.
  StepWatchdog* watchdog = nullptr;
  // Describes the tensors of some steps. May be null.
  TensorReporter* tensors = nullptr;
  // Called when the first step of a plan with a cut has been begun: its weights are there, and nothing else of it has
  // changed anything yet. May be empty.
  std::function<absl::Status(const v1::Plan&)> take_cut;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_TRAINER_OPTIONS_H_
