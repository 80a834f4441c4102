#include "cli/deploy/coordinator_tunnel.h"

#include <poll.h>

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
namespace {

constexpr absl::Duration kCallDeadline = absl::Seconds(2);
constexpr int kPollMilliseconds = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorTunnel>> CoordinatorTunnel::Open(
    SshJob* job, std::shared_ptr<const TaskSecurity> security) {
  const std::string& address = job->deployment().coordinator();
  uint32_t port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) {
    return absl::UnavailableError("the job's coordinator has not been started");
  }
  std::string socket;
  RUBATO_ASSIGN_OR_RETURN(Ssh::Running forward, job->ssh()->Forward(job->coordinator_host(), port, &socket));
  return std::unique_ptr<CoordinatorTunnel>(
      new CoordinatorTunnel(job, std::move(forward), socket, std::move(security)));
}

CoordinatorTunnel::CoordinatorTunnel(SshJob* job, Ssh::Running forward, const std::string& socket,
                                     std::shared_ptr<const TaskSecurity> security)
    : job_(job), forward_(std::move(forward)), client_(absl::StrCat("unix:", socket), std::move(security)) {}

absl::StatusOr<v1::JobStatus> CoordinatorTunnel::AwaitStatus(absl::Duration timeout, const Clock* clock) {
  const absl::Time deadline = clock->Now() + timeout;
  while (true) {
    absl::StatusOr<v1::JobStatus> status = client_.GetStatus(kCallDeadline);
    if (status.ok() || clock->Now() >= deadline) return status;
    if (const std::optional<ExitResult> result = forward_.process->Poll()) {
      const absl::Status outcome = job_->ssh()->Outcome(job_->coordinator_host(), *result, forward_.errors_path);
      return outcome.ok() ? status.status() : outcome;
    }
    struct pollfd event = {forward_.process->descriptor(), POLLIN, 0};
    poll(&event, 1, kPollMilliseconds);
  }
}

}  // namespace rubato
