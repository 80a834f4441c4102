#ifndef RUBATO_BENCH_STEP_STEP_JOB_H_
#define RUBATO_BENCH_STEP_STEP_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::bench {

// What a process of the benchmark is to do; the same flags on every process of a case.
struct StepSetup {
  int64_t batch = 128;
  int workers = 1;
  // As in cluster, with its defaults.
  int64_t chunk_bytes = 512 << 10;
  int64_t message_bytes = 1 << 20;
  // The server has a core of its own and no second one.
  int partitions = 1;
  // Through shared memory; otherwise TCP.
  bool shared_memory = true;
  // Weights are waited for layer by layer and gradients pushed layer by layer; otherwise all at once.
  bool overlap = true;
  // Without a server only: gradients and weights go through TCP nevertheless, from the process to itself.
  bool copies = false;
};

// The MNIST multilayer perceptron, 784-512-512-10, with momentum in SYNC on one server. There is no coordinator:
// all processes know the job from the setup.
struct StepJob {
  v1::JobConfig config;
  ModelSpec model;
  v1::JobDescription description;
  v1::Plan plan;
};

// `server`: where the server is; absent on the server and in a worker without one.
absl::StatusOr<StepJob> MakeStepJob(const StepSetup& setup, const v1::ServerInfo& server);

v1::TaskId StepWorker(uint32_t index);

// Binds this process, all of its threads to come included, to these cores. Internal if the system refuses.
absl::Status PinProcess(const std::vector<int>& cores);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_STEP_STEP_JOB_H_
