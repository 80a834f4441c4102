#include "server/job_config_request.h"

#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/config/client_job.h"
#include "common/grpc_status.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato::server {
namespace {

// One call; a signal ends the wait after it.
constexpr absl::Duration kAsk = absl::Seconds(1);
constexpr absl::Duration kPause = absl::Milliseconds(100);

absl::StatusOr<v1::JobConfig> Ask(v1::Coordinator::Stub* stub, absl::Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout + kAsk));
  v1::GetJobConfigRequest request;
  request.set_timeout_seconds(absl::ToDoubleSeconds(timeout));
  v1::GetJobConfigReply reply;
  const absl::Status status = FromGrpcStatus(stub->GetJobConfig(&context, request, &reply));
  if (!status.ok()) return status;
  return reply.config();
}

}  // namespace

absl::StatusOr<v1::JobConfig> RequestJobConfig(const v1::JobConfig& config, const std::string& coordinator,
                                               const TaskSecurity* security, const std::function<bool()>& cancelled,
                                               Clock* clock, Logger* log) {
  const double seconds = config.cluster().start_timeout_seconds();
  const absl::Time deadline = clock->Now() + absl::Seconds(seconds);
  const std::unique_ptr<v1::Coordinator::Stub> stub =
      v1::Coordinator::NewStub(OpenChannel(coordinator, Party::kCoordinator, 0, security, grpc::ChannelArguments()));
  log->Info(absl::StrCat("waits for the job's model, which a client offers to the coordinator at ", coordinator));
  for (;;) {
    const absl::Duration left = deadline - clock->Now();
    const absl::StatusOr<v1::JobConfig> complete = Ask(stub.get(), std::clamp(left, absl::Milliseconds(1), kAsk));
    if (complete.ok()) return WithModelOf(config, *complete);
    if (cancelled()) return absl::AbortedError("stopped while it waited for the job's model");
    const bool wait = absl::IsUnavailable(complete.status()) || absl::IsDeadlineExceeded(complete.status());
    if (!wait) return complete.status();
    if (clock->Now() >= deadline) {
      return absl::UnavailableError(absl::StrCat("the coordinator at ", coordinator,
                                                 " had no model of a client within cluster.start_timeout_seconds, ",
                                                 seconds, ": ", complete.status().message()));
    }
    clock->Sleep(kPause);
  }
}

}  // namespace rubato::server
