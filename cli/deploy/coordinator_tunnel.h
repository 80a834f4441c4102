#ifndef RUBATO_CLI_DEPLOY_COORDINATOR_TUNNEL_H_
#define RUBATO_CLI_DEPLOY_COORDINATOR_TUNNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/deploy/ssh.h"
#include "cli/deploy/ssh_job.h"
#include "cli/launch/coordinator_client.h"
#include "common/clock.h"
#include "common/security/task_security.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// A connection to the coordinator of a job on hosts, through ssh, for as long as this object lives. Not thread-safe.
class CoordinatorTunnel {
 public:
  // Begins to connect; `security` may be null. The job outlives it. Unavailable: the coordinator has not been started,
  // or ssh cannot be.
  static absl::StatusOr<std::unique_ptr<CoordinatorTunnel>> Open(SshJob* job,
                                                                 std::shared_ptr<const TaskSecurity> security);

  // Its calls fail until the tunnel is open, and when it has ended.
  CoordinatorClient* client() { return &client_; }
  // The coordinator's first answer. Unavailable: none within `timeout`, or ssh has ended, with the reason.
  absl::StatusOr<v1::JobStatus> AwaitStatus(absl::Duration timeout, const Clock* clock);
  bool HasEnded() { return forward_.process->Poll().has_value(); }

 private:
  CoordinatorTunnel(SshJob* job, Ssh::Running forward, const std::string& socket,
                    std::shared_ptr<const TaskSecurity> security);

  SshJob* const job_;
  const Ssh::Running forward_;
  CoordinatorClient client_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_DEPLOY_COORDINATOR_TUNNEL_H_
