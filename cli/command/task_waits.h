#ifndef RUBATO_CLI_COMMAND_TASK_WAITS_H_
#define RUBATO_CLI_COMMAND_TASK_WAITS_H_

#include <string>

#include "proto/coordinator.pb.h"

namespace rubato {

// Whether a task that is alive has missed a heartbeat, and will be evicted if it stays silent.
bool IsSilent(const v1::JobStatus& status, const v1::TaskStatus& task);

// What keeps a task that is alive from going on, and for how long: "is silent for 3.0 s; it is evicted after 5 s",
// "waits for worker 1, for 1.2 s". Empty for a task that goes on; steps wait for less than half a second.
std::string WaitOf(const v1::JobStatus& status, const v1::TaskStatus& task);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_TASK_WAITS_H_
