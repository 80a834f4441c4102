#ifndef RUBATO_COMMON_SESSION_TASK_SESSION_H_
#define RUBATO_COMMON_SESSION_TASK_SESSION_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/session/session.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato {

// What the sessions of all tasks of a job have in common: the coordinator's address, who the task is and how it proves
// it, its process and its config, and how long it does without the coordinator. The caller adds the callbacks, and what
// else it registers with. `clock` and `log` outlive the session.
Session::Options TaskSessionOptions(const v1::JobConfig& config, const std::string& coordinator,
                                    std::shared_ptr<const TaskSecurity> security, const v1::TaskId& task,
                                    const Clock* clock, Logger* log);

// What a Stop is to the task that gets it. OK if the job is done, or was stopped on request, which is then said in
// `log` as information: who asked, and how another job goes on from its weights. Aborted, with the reason: the job has
// failed, or the task was refused or evicted.
absl::Status HeedStop(const v1::Stop& stop, const v1::JobConfig& config, Logger* log);

}  // namespace rubato

#endif  // RUBATO_COMMON_SESSION_TASK_SESSION_H_
