#ifndef RUBATO_COMMON_SESSION_COORDINATOR_CHANNEL_H_
#define RUBATO_COMMON_SESSION_COORDINATOR_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "common/security/task_security.h"

namespace rubato {

// A task's connection to the coordinator at "host:port", of its own. It comes about when something is asked.
// `security` may be null.
std::shared_ptr<grpc::Channel> OpenCoordinatorChannel(const std::string& address, const TaskSecurity* security);

}  // namespace rubato

#endif  // RUBATO_COMMON_SESSION_COORDINATOR_CHANNEL_H_
