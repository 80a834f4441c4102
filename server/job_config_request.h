#ifndef RUBATO_SERVER_JOB_CONFIG_REQUEST_H_
#define RUBATO_SERVER_JOB_CONFIG_REQUEST_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/security/task_security.h"
#include "proto/job_config.pb.h"

namespace rubato::server {

// `config`, which awaits its model, with the model that a client has offered to the coordinator ("host:port"). Asks
// until cluster.start_timeout_seconds have passed, and says in the log what it waits for. Unavailable: the coordinator,
// or a client, did not come. Aborted: `cancelled`. Other errors of the coordinator and of WithModelOf.
absl::StatusOr<v1::JobConfig> RequestJobConfig(const v1::JobConfig& config, const std::string& coordinator,
                                               const TaskSecurity* security, const std::function<bool()>& cancelled,
                                               Clock* clock, Logger* log);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_JOB_CONFIG_REQUEST_H_
