#ifndef RUBATO_COMMON_SESSION_TASK_SESSION_H_
#define RUBATO_COMMON_SESSION_TASK_SESSION_H_

#include <string>

#include "common/clock.h"
#include "common/log.h"
#include "common/session/session.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato {

// What the sessions of all tasks of a job have in common: the coordinator's address, who the task is, its process and
// its config, and how long it does without the coordinator. The caller adds the callbacks, and what else it registers
// with. `clock` and `log` outlive the session.
Session::Options TaskSessionOptions(const v1::JobConfig& config, const std::string& coordinator, const v1::TaskId& task,
                                    const Clock* clock, Logger* log);

}  // namespace rubato

#endif  // RUBATO_COMMON_SESSION_TASK_SESSION_H_
