#include "cli/command/named_job.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cli/command/run_directory.h"
#include "cli/launch/run_security.h"
#include "common/security/credentials.h"
#include "common/security/open_security.h"
#include "common/status.h"

namespace rubato {
namespace {

absl::Status EndedError(const NamedJob& job) {
  return absl::FailedPreconditionError(DescribeEnding(*job.ending, job.run_directory));
}

// How a call was made, with the folder of --credentials: a coordinator that refuses it in TLS's handshake cannot say
// so.
std::string DescribeCredentials(const std::string& folder) {
  constexpr char kNeeds[] = "a job of several hosts needs --credentials with its certificates";
  if (folder.empty()) return absl::StrCat("It was called without TLS: ", kNeeds);
  if (!HasAuthority(folder)) {
    return absl::StrCat("It was called without TLS, since ", folder, " has no ca.crt: ", kNeeds);
  }
  return absl::StrCat(
      "It was called with TLS: a job on one machine has none, and another job's certificates, as perhaps "
      "those in ",
      folder, ", are refused");
}

}  // namespace

void AddJobChoice(CLI::App* command, const std::string& name, JobChoice* choice) {
  command->add_option(name, choice->place, "The coordinator's host:port, or the run's directory")->required();
  command->add_option("--credentials", choice->credentials,
                      "The folder with an operator's credentials; default: credentials in the run's directory");
}

absl::StatusOr<NamedJob> FindJob(const JobChoice& choice, absl::Time now) {
  const std::string& text = choice.place;
  NamedJob job;
  std::error_code ignored;
  if (std::filesystem::is_directory(text, ignored)) {
    job.run_directory = text;
    job.ending = ReadRunEnding(text);
    if (job.ending.has_value()) return job;
  }
  job.credentials = choice.credentials;
  RUBATO_ASSIGN_OR_RETURN(job.address, CoordinatorAddress(text));
  const bool by_run = choice.credentials.empty() && !job.run_directory.empty();
  RUBATO_ASSIGN_OR_RETURN(job.security, by_run ? SecurityOfRun(job.run_directory, now)
                                               : OpenFolderSecurity(choice.credentials, Party::kOperator, 0, now));
  return job;
}

absl::StatusOr<NamedJob> FindRunningJob(const JobChoice& choice, absl::Time now) {
  RUBATO_ASSIGN_OR_RETURN(NamedJob job, FindJob(choice, now));
  if (job.ending.has_value()) return EndedError(job);
  return job;
}

absl::Status ExplainSilence(const NamedJob& job, const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return status;
  if (job.run_directory.empty()) {
    return absl::UnavailableError(absl::StrCat(
        "nothing answers at ", job.address,
        ". Check that this is where the job's coordinator listens (its log and coordinator.address in the "
        "run directory say so), that the job still runs, and that the port can be reached from this machine. ",
        DescribeCredentials(job.credentials)));
  }
  NamedJob now = job;
  now.ending = ReadRunEnding(job.run_directory);
  if (now.ending.has_value()) return EndedError(now);
  return absl::UnavailableError(absl::StrCat("the coordinator of the run in ", job.run_directory,
                                             " does not answer at ", job.address,
                                             ", and the run record has no end. Check whether it was killed (rubato "
                                             "train CONFIG --resume goes on with the run), and whether its port can be "
                                             "reached from this machine"));
}

}  // namespace rubato
