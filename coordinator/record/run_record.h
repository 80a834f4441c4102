#ifndef RUBATO_COORDINATOR_RECORD_RUN_RECORD_H_
#define RUBATO_COORDINATOR_RECORD_RUN_RECORD_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "coordinator/rules/job_progress.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// The lines of metrics.jsonl (docs/formats.md), without the newline. `t` is seconds since training began. A number that
// is not finite is written as null. Pure functions.

std::string StartLine(double t, const v1::JobConfig& config, int64_t train_examples);

// `epoch` is the job's position.
std::string ProgressLine(double t, const JobProgress::Interval& interval, double epoch, const v1::Plan& plan,
                         const std::map<uint32_t, v1::WorkerProgress>& workers);

std::string EvaluationLine(double t, double epoch, int64_t step, const v1::EvaluationResult& result, bool final);

struct PlanTimes {
  double round_trip_seconds = 0;
  double stall_seconds = 0;
  double slowest_step_seconds = 0;
};
std::string PlanLine(double t, const v1::Plan& plan, absl::string_view reason, const PlanTimes& times);

// `event` is "joined", "left" or "evicted".
std::string MemberLine(double t, const v1::TaskId& task, absl::string_view event, absl::string_view reason);

// `training_seconds` leaves out what follows the last worker's last step.
std::string EndLine(double t, absl::string_view error, const ProgressTotals& totals, double training_seconds);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_RUN_RECORD_H_
