#ifndef RUBATO_COMMON_TRACE_TRACE_FILES_H_
#define RUBATO_COMMON_TRACE_TRACE_FILES_H_

#include <string>

#include "proto/job_config.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// Where a job's traces are: "<run directory>/traces".
std::string TraceDirectory(const v1::JobConfig& config);

// "server-0.json", "worker-3.json".
std::string TraceFile(const v1::TaskId& task);

}  // namespace rubato

#endif  // RUBATO_COMMON_TRACE_TRACE_FILES_H_
