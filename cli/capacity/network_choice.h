#ifndef RUBATO_CLI_CAPACITY_NETWORK_CHOICE_H_
#define RUBATO_CLI_CAPACITY_NETWORK_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/network_link/link_model.h"

namespace rubato::capacity {

// By task. A message from one to another takes the latencies of both, and the rate of the slower one.
struct ClusterLinks {
  std::vector<LinkModel> workers;
  std::vector<LinkModel> servers;
};

// Reads values of --network: "worker:*:LINK", "server:*:LINK", or with an index instead of the star for one of them;
// LINK alone is the network of all: its latency once between any two tasks, and its rate for each of them. What names
// one task goes before what names all of its role, and that before a LINK alone. Each is given once at most.
// InvalidArgument: names the value, and what is allowed.
absl::StatusOr<ClusterLinks> ParseClusterLinks(const std::vector<std::string>& values, uint32_t workers,
                                               uint32_t servers);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_NETWORK_CHOICE_H_
