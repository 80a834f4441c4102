#ifndef RUBATO_COMMON_TASK_LOG_H_
#define RUBATO_COMMON_TASK_LOG_H_

#include "common/clock.h"
#include "common/log.h"
#include "proto/job_config.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// The log of a task's process: its lines say which task, and have the form that observability.log_format asks for.
// `clock` outlives it.
Logger MakeTaskLogger(const v1::TaskId& task, const v1::JobConfig& config, const Clock* clock);

}  // namespace rubato

#endif  // RUBATO_COMMON_TASK_LOG_H_
