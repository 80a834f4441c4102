#ifndef RUBATO_CLI_LAUNCH_COORDINATOR_CLIENT_H_
#define RUBATO_CLI_LAUNCH_COORDINATOR_CLIENT_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/task_security.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/coordinator.pb.h"

namespace rubato {

// The operator's calls to a coordinator. Each has a deadline; its errors name the coordinator's address: Unavailable
// when nobody answers there, DeadlineExceeded, or what the coordinator answered. Thread-safe.
//
//   CoordinatorClient coordinator("127.0.0.1:7000", OpenOperatorSecurity(config, clock->Now()).value());
//   RUBATO_ASSIGN_OR_RETURN(v1::JobStatus status, coordinator.GetStatus(absl::Seconds(5)));
class CoordinatorClient {
 public:
  // "host:port". Connects when the first call is made. `security` may be null.
  CoordinatorClient(std::string address, std::shared_ptr<const TaskSecurity> security);

  // Gives a connection that is not there yet half a second before it asks. Who asks in a loop gets through to a
  // coordinator that is starting: an attempt to connect goes on only while somebody waits.
  absl::StatusOr<v1::JobStatus> GetStatus(absl::Duration deadline);
  absl::StatusOr<v1::SwitchModeReply> SwitchMode(const v1::SwitchModeRequest& request, absl::Duration deadline);
  absl::StatusOr<v1::TraceJobReply> TraceJob(double seconds, absl::Duration deadline);
  absl::StatusOr<v1::WriteCheckpointNowReply> WriteCheckpointNow(absl::Duration deadline);
  absl::Status StopJob(const std::string& reason, absl::Duration deadline);

  const std::string& address() const { return address_; }

 private:
  const std::string address_;
  const std::shared_ptr<const TaskSecurity> security_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_COORDINATOR_CLIENT_H_
