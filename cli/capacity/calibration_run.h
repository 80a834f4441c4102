#ifndef RUBATO_CLI_CAPACITY_CALIBRATION_RUN_H_
#define RUBATO_CLI_CAPACITY_CALIBRATION_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/capacity/costs.h"
#include "cli/capacity/job_layout.h"
#include "cli/capacity/recorded_requests.h"
#include "cli/capacity/task_trace.h"

namespace rubato::capacity {

// How long a batch's messages were on their way, both ways together: what its exchange took at the worker, without what
// the server took for it.
struct RecordedTransport {
  int64_t bytes = 0;  // Of both payloads.
  SimTime length = 0;
};

// What a traced run tells of the time things take. Pure data.
struct CalibrationRun {
  std::string directory;
  JobLayout layout;
  // Servers read tensors where they were.
  bool in_place = false;
  // Of all workers.
  std::vector<RecordedStep> steps;
  std::vector<RecordedTransport> transports;
  std::vector<RecordedServer> servers;
  // Steps a second, of all workers together.
  double worker_steps_per_second = 0;
  int64_t dropped_spans = 0;

  int workers() const { return layout.workers(); }
};

// Reads <run_directory>/job.textproto and the tasks' traces in `traces`. InvalidArgument: what is there is no trace of
// this run, or says too little; NotFound and others: a file cannot be read.
absl::StatusOr<CalibrationRun> ReadCalibrationRun(const std::string& run_directory, const std::string& traces);

// The same of what has been read. `config` has all defaults.
absl::StatusOr<CalibrationRun> MakeCalibrationRun(const std::string& run_directory, const v1::JobConfig& config,
                                                  const std::vector<TaskTrace>& traces);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_CALIBRATION_RUN_H_
