#ifndef RUBATO_CLI_CAPACITY_CAPACITY_PLAN_H_
#define RUBATO_CLI_CAPACITY_CAPACITY_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/capacity/bottleneck.h"
#include "cli/capacity/calibration_run.h"
#include "cli/capacity/network_choice.h"
#include "cli/capacity/simulation.h"
#include "common/straggler/straggler_model.h"
#include "proto/job_config.pb.h"

namespace rubato::capacity {

struct PlanOptions {
  // With as many workers and servers as are planned, and all defaults.
  v1::JobConfig config;
  std::vector<CalibrationRun> runs;
  // By worker.
  std::vector<StragglerModel> stragglers;
  ClusterLinks links;
  // Of the machine on which the calibration's tasks ran together. 0: each ran on one of its own.
  int processors = 0;
  // The job that is planned runs on that machine too, instead of each task on one of its own.
  bool one_host = false;
  uint64_t seed = 0;
  // As SimulationOptions has it.
  int64_t steps = 0;
};

struct CapacityPlan {
  // A calibration run, and what the model says of it.
  struct Check {
    std::string directory;
    int workers = 0;
    double measured_steps_per_second = 0;  // Of all workers together.
    double predicted_steps_per_second = 0;
  };

  v1::JobConfig config;
  int messages_per_step = 0;  // Of a worker, each way.
  int64_t pushed_bytes = 0;   // Of a worker's step.
  int64_t pulled_bytes = 0;
  SimulationResult result;
  double samples_per_second = 0;
  Bottleneck bottleneck;
  std::optional<Saturation> saturation;
  // Fitted to the calibration runs' rates: of what was recorded of a message, what it costs when it is alone; and if
  // the runs' tasks shared processors, as Costs has it.
  double transport_share = 1;
  double processor_share = 1;
  std::vector<Check> checks;
  std::vector<std::string> notes;
};

// Fits the costs, simulates the calibration runs, by whose own rates one can see what to think of it, and then the job.
// InvalidArgument: as of Calibrate and MakeJobLayout; Internal: as of Simulate.
absl::StatusOr<CapacityPlan> PlanCapacity(const PlanOptions& options);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_CAPACITY_PLAN_H_
