#ifndef RUBATO_COMMON_CONFIG_VALIDATE_H_
#define RUBATO_COMMON_CONFIG_VALIDATE_H_

#include "absl/status/status.h"
#include "proto/job_config.pb.h"

namespace rubato {

// Checks a config whose defaults are filled in: every range that proto/*_config.proto states, and every combination
// of fields. Nothing is read from the disk. InvalidArgument with all errors, one per line:
// "<field path>: value <value>; allowed: <allowed>". A config that awaits its model (client_job.h) is checked without
// it.
absl::Status ValidateJobConfig(const v1::JobConfig& config);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_VALIDATE_H_
