#ifndef RUBATO_CLI_CAPACITY_CALIBRATION_H_
#define RUBATO_CLI_CAPACITY_CALIBRATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/capacity/calibration_run.h"
#include "cli/capacity/costs.h"
#include "proto/job_config.pb.h"

namespace rubato::capacity {

// Costs, and what somebody who reads a plan should know of them, a sentence each.
struct Calibration {
  Costs costs;
  std::vector<std::string> notes;
};

// Fits the costs of the job that is planned. Steps, transport and requests are those of the run with the fewest
// workers, which disturb each other least; updates, which depend on how many contribute, are those of all runs.
// InvalidArgument: `runs` is empty, or one of them trains something else.
absl::StatusOr<Calibration> Calibrate(const std::vector<CalibrationRun>& runs, const v1::JobConfig& planned);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_CALIBRATION_H_
