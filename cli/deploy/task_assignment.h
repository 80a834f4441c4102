#ifndef RUBATO_CLI_DEPLOY_TASK_ASSIGNMENT_H_
#define RUBATO_CLI_DEPLOY_TASK_ASSIGNMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/deployment.pb.h"
#include "proto/job_config.pb.h"

namespace rubato {

// Which task runs where: the coordinator first, then servers, workers and evaluators in order of index. Tasks of a role
// are dealt to the hosts round-robin, as long as a host has room for one more.
// InvalidArgument: the hosts have too few slots; names each role that is short.
absl::StatusOr<std::vector<v1::DeployedTask>> AssignTasks(const v1::HostsConfig& hosts,
                                                          const v1::ClusterConfig& cluster);

// Ports that must be free on the host: those that the hosts file gives to the coordinator and the servers.
std::vector<uint32_t> FixedPorts(const v1::HostsConfig& hosts, const std::vector<v1::DeployedTask>& tasks, int host);

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_TASK_ASSIGNMENT_H_
