#ifndef RUBATO_COORDINATOR_RECORD_JOB_METRICS_H_
#define RUBATO_COORDINATOR_RECORD_JOB_METRICS_H_

#include <string>

#include "common/metrics/metric_text.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// Adds what the coordinator knows of the job and its tasks to its page of metrics. Pure.
void AddJobMetrics(const v1::JobStatus& status, const v1::JobConfig& config, MetricText* text);

// Where Prometheus finds all tasks that show metrics, as its http_sd_configs reads it: `own_address`, where the
// coordinator does, and those of the living tasks, with the job's name as the label "rubato_job". Pure.
std::string MetricTargets(const v1::JobStatus& status, const std::string& own_address);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_JOB_METRICS_H_
