#ifndef RUBATO_CLI_REPLAY_REPLAY_WORKER_H_
#define RUBATO_CLI_REPLAY_REPLAY_WORKER_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "cli/replay/recorded_run.h"
#include "cli/replay/replay_servers.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/data/dataset.h"
#include "worker/device/backend_choice.h"

namespace rubato {

// A worker of a replay. All pointers outlive it.
struct ReplayWorkerOptions {
  const v1::JobConfig* config = nullptr;
  const ModelSpec* spec = nullptr;
  const v1::JobDescription* job = nullptr;
  const RecordedRun* run = nullptr;
  // Index of the run's members.
  size_t member = 0;
  ReplayServers* servers = nullptr;
  std::shared_ptr<const worker::Dataset> dataset;
  worker::BackendFactory factory;
  Clock* clock = nullptr;
  Logger* log = nullptr;
};

// Trains the member's recorded steps, as the worker of the run did. Errors of the model, the data and ReplayServers;
// FailedPrecondition: the device's memory is not the host's.
absl::Status TrainRecordedSteps(const ReplayWorkerOptions& options);

}  // namespace rubato

#endif  // RUBATO_CLI_REPLAY_REPLAY_WORKER_H_
