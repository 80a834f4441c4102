#ifndef RUBATO_COORDINATOR_RECORD_RUN_RECORD_H_
#define RUBATO_COORDINATOR_RECORD_RUN_RECORD_H_

#include <cstdint>
#include <map>

#include "absl/strings/string_view.h"
#include "coordinator/rules/job_progress.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "proto/journal.pb.h"
#include "proto/run_record.pb.h"

namespace rubato::coordinator {

// The lines of the run record. `t` is seconds since training began. Pure functions.

v1::RunRecordLine StartLine(double t, const v1::JobConfig& config, int64_t train_examples);

// `epoch` is the job's position.
v1::RunRecordLine ProgressLine(double t, const v1::JobConfig& config, const JobProgress::Interval& interval,
                               double epoch, const v1::Plan& plan,
                               const std::map<uint32_t, v1::WorkerProgress>& workers);

v1::RunRecordLine EvaluationLine(double t, double epoch, int64_t step, const v1::EvaluationResult& result, bool final);

struct PlanTimes {
  double round_trip_seconds = 0;
  double stall_seconds = 0;
  double slowest_step_seconds = 0;
};
v1::RunRecordLine PlanLine(double t, const v1::Plan& plan, absl::string_view reason, const PlanTimes& times);

// `bytes`: of all parts; `seconds`: from the request until they were on disks.
v1::RunRecordLine CheckpointLine(double t, const v1::CutRecord& cut, int64_t bytes, double seconds);
// The term begins with a rollback.
v1::RunRecordLine RollbackLine(double t, const v1::JournalTerm& term);

v1::RunRecordLine MemberLine(double t, const v1::TaskId& task, v1::MemberLine::Event event, absl::string_view reason);

// `refused`: why; empty: it was not.
v1::RunRecordLine RequestLine(double t, absl::string_view request, absl::string_view by, absl::string_view refused);

// `training_seconds` leaves out what follows the last worker's last step.
v1::RunRecordLine EndLine(double t, absl::string_view error, const ProgressTotals& totals, double training_seconds);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_RUN_RECORD_H_
