#include "cli/command/resumable_run.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/command/run_directory.h"
#include "cli/command/run_ending.h"
#include "cli/launch/coordinator_client.h"
#include "cli/launch/run_security.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// For a coordinator on this machine or near it.
constexpr absl::Duration kAnswer = absl::Seconds(2);

}  // namespace

absl::Status CheckResumable(const std::string& run_directory, absl::Time now) {
  if (!FileExists(JoinPath(run_directory, "journal"))) {
    return absl::NotFoundError(absl::StrCat("--resume: ", run_directory,
                                            " holds no journal of a job to go on with; without --resume a job begins "
                                            "there"));
  }
  const std::optional<RunEnding> ending = ReadRunEnding(run_directory);
  if (ending.has_value() && ending->ok) {
    return absl::FailedPreconditionError(
        absl::StrCat("--resume: there is nothing left to do. ", DescribeEnding(*ending, run_directory)));
  }
  // Where its coordinator was, another job's may be now.
  const absl::StatusOr<std::string> address = CoordinatorAddress(run_directory);
  if (ending.has_value() || !address.ok()) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const TaskSecurity> security, SecurityOfRun(run_directory, now));
  const absl::StatusOr<v1::JobStatus> status = CoordinatorClient(*address, std::move(security)).GetStatus(kAnswer);
  if (!status.ok() || status->run_directory() != run_directory) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--resume: the job in ", run_directory, " still runs: its coordinator answers at ", *address));
}

absl::Status CheckSameJob(const v1::JobConfig& config) {
  const std::string stored = JoinPath(config.run_directory(), "job.textproto");
  if (!FileExists(stored)) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(const v1::JobConfig before, LoadJobConfig(stored, {}, {.may_await_model = true}));
  const std::string difference = ConfigDifference(before, config);
  if (difference.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--resume: this is not the config of the run in ", config.run_directory(), " (", difference,
                   "); allowed: the same config and --set options as before, or --overwrite, which begins anew"));
}

}  // namespace rubato
