#ifndef RUBATO_COORDINATOR_RULES_REGISTRATION_H_
#define RUBATO_COORDINATOR_RULES_REGISTRATION_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// Workers may join with any index below this.
inline constexpr uint32_t kMaxWorkers = 1024;

// What a job demands of a task that registers.
struct RegistrationRules {
  const v1::JobConfig* config = nullptr;
  uint64_t config_fingerprint = 0;
  // Of the workers that are there; 0 while there is none.
  int64_t train_examples = 0;
};

// InvalidArgument names the task, what it said and what the job has.
absl::Status CheckRegistration(const RegistrationRules& rules, const v1::TaskId& task, const v1::Register& info);

// The host of a gRPC peer name: "ipv4:10.0.0.2:5555" is "10.0.0.2", "ipv6:[::1]:5555" is "[::1]". Others, a Unix socket
// for one, are "localhost".
std::string PeerHost(absl::string_view peer);

// Where workers reach a server that announces `announced`, "host:port", seen as `peer`. An empty host, 0.0.0.0 and [::]
// mean the peer's host. InvalidArgument when there is no port in 1 to 65535.
absl::StatusOr<std::string> ReachableAddress(absl::string_view announced, absl::string_view peer);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_REGISTRATION_H_
