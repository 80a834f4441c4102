#ifndef RUBATO_CLI_CAPACITY_SIMULATION_H_
#define RUBATO_CLI_CAPACITY_SIMULATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/capacity/costs.h"
#include "cli/capacity/job_layout.h"
#include "common/network_link/link_model.h"
#include "common/straggler/straggler_model.h"

namespace rubato::capacity {

struct SimulationOptions {
  // Both outlive the simulation; there is a recorded step at least.
  const JobLayout* layout = nullptr;
  const Costs* costs = nullptr;
  // By worker. Absent: none; workers pause as long as in the recorded steps.
  std::optional<std::vector<StragglerModel>> stragglers = {};
  // By worker and by server; empty: messages take the transport's time alone.
  std::vector<LinkModel> worker_links = {};
  std::vector<LinkModel> server_links = {};
  // Tensors are read where they are, and not sent over links.
  bool in_place = false;
  // Of one machine for all tasks. 0: each has one to itself.
  int shared_processors = 0;
  // Where each has one: threads that move a worker's messages at the same time.
  int worker_threads = 1;
  // Of stragglers, and of what is drawn.
  uint64_t seed = 0;
  // Steps of each worker that are measured; 0: until the rate is known to a percent.
  int64_t steps = 0;
};

// Shares of the time, 0 to 1, for which something was at work.
struct ServerLoad {
  uint32_t server = 0;
  double partition = 0;  // Of its busiest one.
  double transport = 0;
  double link_in = 0;
  double link_out = 0;
};
struct WorkerLoad {
  double transport = 0;
  double link_in = 0;
  double link_out = 0;
};

// Of a worker's step, in seconds, on average over all steps and workers.
struct StepSeconds {
  double total = 0;
  double computing = 0;  // Sleeping and waiting for a shared processor included.
  double barrier = 0;
  double network = 0;
  double server = 0;
  double queued = 0;  // Of network and server: for its turn.
  double p50 = 0;
  double p99 = 0;  // Of the total.
};

struct SimulationResult {
  int64_t steps = 0;  // Measured, of all workers together.
  double virtual_seconds = 0;
  int64_t events = 0;
  // Of all workers together, and the half of its 95 % interval.
  double worker_steps_per_second = 0;
  double worker_steps_error = 0;
  // New versions of a chunk, and the contributions in them.
  double updates_per_second = 0;
  double contributions_per_second = 0;
  StepSeconds step;
  // In versions, of the largest of a step's pushes.
  double staleness_mean = 0;
  int64_t staleness_p99 = 0;
  // In order of their indices.
  std::vector<ServerLoad> servers;
  // The most of any worker.
  WorkerLoad busiest_worker;
  // Of shared processors; 0 if there are none.
  double processors = 0;
};

// Runs the job's rules in virtual time until its rate is known. The same options give the same result. Pure.
// Internal: the rules refused something, which they never should.
absl::StatusOr<SimulationResult> Simulate(const SimulationOptions& options);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_SIMULATION_H_
