#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/command/client_job.h"
#include "cli/command/commands.h"
#include "cli/command/job_run.h"
#include "cli/command/resumable_run.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

struct ServeOptions {
  ClientJobOptions job;
  LaunchOptions launch;
  std::string name = "job";
  std::string address_file;
  std::string host;
};

// Whether somebody holds the other end and may close it. Not so a terminal, a file or /dev/null.
bool IsPipe(int descriptor) {
  struct stat file = {};
  return fstat(descriptor, &file) == 0 && (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}

// The terminal is the workers': the report is written, and not shown.
absl::Status ReportQuietly(const PreparedRun& run, absl::Status outcome, const Environment& environment) {
  std::ostringstream unseen;
  Environment quiet = environment;
  quiet.out = &unseen;
  outcome = ReportRun(run, std::move(outcome), quiet);
  if (outcome.ok())
    *environment.out << "[job] done; what it has left is in " << run.config.run_directory() << std::endl;
  return outcome;
}

absl::Status Serve(const ServeOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<StopSignals> signals, StopSignals::Create());
  if (IsPipe(STDIN_FILENO)) RUBATO_RETURN_IF_ERROR(signals->AlsoAtEndOf(STDIN_FILENO));
  // Nobody is to find the address of an earlier job.
  RUBATO_RETURN_IF_ERROR(RemoveFile(options.address_file));
  RUBATO_ASSIGN_OR_RETURN(PreparedRun run, PrepareClientRun(options.job, options.name, options.launch,
                                                            {.host = options.host}, environment));
  if (run.resume) RUBATO_RETURN_IF_ERROR(CheckResumable(run.config.run_directory(), environment.clock->Now()));
  run.on_started = [&options](const LocalTaskHost& host) {
    return WriteFileAtomically(options.address_file, absl::StrCat(host.coordinator(), "\n"));
  };
  run.show_progress = false;
  *environment.out << "[job] " << run.config.name() << ": run directory " << run.config.run_directory() << std::endl;
  absl::Status outcome = RunJob(run, "[job] ", signals.get(), environment);
  const absl::Status removed = RemoveFile(options.address_file);
  outcome = ReportQuietly(run, std::move(outcome), environment);
  outcome.Update(removed);
  return outcome;
}

}  // namespace

void AddServeCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "serve", "Run coordinator and servers of a job whose workers somebody else starts: mpirun, srun, torchrun");
  command->footer(
      "Workers find the job by RUBATO_COORDINATOR, which is what the address file holds. It is written when they may\n"
      "come, and goes when the job has ended. RUBATO_CREDENTIALS, which is credentials in the run directory, has what\n"
      "they prove themselves with. If standard input is a pipe, its end stops the job.");
  auto options = std::make_shared<ServeOptions>();
  AddClientJobOptions(command, &options->job);
  AddLaunchOptions(command, &options->launch);
  command->add_option("--name", options->name, "The job's name, if its config has none")->capture_default_str();
  command->add_option("--address_file", options->address_file, "Where the coordinator's host:port is written")
      ->required();
  command->add_option(
      "--host", options->host,
      "What other hosts call this one, for a job that has certificates (rubato credentials) or is insecure; "
      "otherwise all workers have to be on this machine");
  command->callback([options, environment, exit_code] {
    const absl::Status status = Serve(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "serve", status);
  });
}

}  // namespace rubato
