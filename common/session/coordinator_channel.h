#ifndef RUBATO_COMMON_SESSION_COORDINATOR_CHANNEL_H_
#define RUBATO_COMMON_SESSION_COORDINATOR_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>

namespace rubato {

// A task's connection to the coordinator at "host:port", of its own. It comes about when something is asked.
std::shared_ptr<grpc::Channel> OpenCoordinatorChannel(const std::string& address);

}  // namespace rubato

#endif  // RUBATO_COMMON_SESSION_COORDINATOR_CHANNEL_H_
