#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "cli/command/commands.h"
#include "cli/launch/job_credentials.h"
#include "common/config/load.h"
#include "common/security/credentials.h"
#include "common/security/metrics_token.h"
#include "common/security/open_security.h"
#include "common/security/token_file.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

struct CredentialsOptions {
  std::string job;
  std::vector<std::string> overrides;
  std::string directory;
  int days = 90;
};

absl::Status MakeCredentials(const CredentialsOptions& options, const Environment& environment) {
  std::error_code ignored;
  const bool is_run = std::filesystem::is_directory(options.job, ignored);
  const std::string path = is_run ? JoinPath(options.job, "job.textproto") : options.job;
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, LoadJobConfig(path, options.overrides, {.may_await_model = true}));
  // Its own path may begin in another working directory.
  if (is_run) config.set_run_directory(options.job);
  const std::string folder = options.directory.empty() ? CredentialsFolder(config) : options.directory;
  const bool renewed = HasAuthority(folder);
  const Validity validity = {environment.clock->Now(), absl::Hours(24) * options.days};
  const std::vector<Identity> whose = IdentitiesOf(config);
  RUBATO_RETURN_IF_ERROR(WriteCredentials(folder, config.name(), whose, validity));
  // Of all tasks, so that a scraper needs one.
  RUBATO_RETURN_IF_ERROR(MakeToken(MetricsTokenPath(folder)));
  *environment.out << absl::StrFormat(
      "%s: %d certificates of job %s, valid until %s, %s\n", folder, whose.size(), config.name(),
      absl::FormatTime("%Y-%m-%d %H:%M UTC", validity.begin + validity.lifetime, absl::UTCTimeZone()),
      renewed ? "by the authority that was there; tasks that run take them within seconds"
              : "and their authority. ca.key stays here: whoever has it can make more");
  return absl::OkStatus();
}

}  // namespace

void AddCredentialsCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "credentials", "Make the certificates that the tasks of a job know each other by, or new ones");
  auto options = std::make_shared<CredentialsOptions>();
  command->add_option("JOB", options->job, "The job's config, or the directory of its run")->required();
  command->add_option("--set", options->overrides, "path=value: overrides a field of the config; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--directory", options->directory,
                      "Where they go; otherwise security.credentials, or credentials in the run directory");
  command->add_option("--days", options->days, "How long they are valid, 1 to 3650")
      ->capture_default_str()
      ->check(CLI::Range(1, 3650));
  command->callback([options, environment, exit_code] {
    const absl::Status status = MakeCredentials(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "credentials", status);
  });
}

}  // namespace rubato
