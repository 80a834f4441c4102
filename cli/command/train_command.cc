#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/command/commands.h"
#include "cli/command/job_page_url.h"
#include "cli/command/job_run.h"
#include "cli/command/resumable_run.h"
#include "common/status.h"

namespace rubato {
namespace {

struct TrainOptions {
  RunOptions run;
  // Empty: as the config says.
  std::string page;
};

absl::Status Train(const TrainOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<StopSignals> signals, StopSignals::Create());
  RunOptions run_options = options.run;
  if (!options.page.empty()) {
    run_options.overrides.push_back(absl::StrCat("observability.page_address=", options.page));
  }
  RUBATO_ASSIGN_OR_RETURN(PreparedRun run, PrepareRun(run_options, environment));
  run.on_started = [&](const LocalTaskHost&) -> absl::Status {
    if (run.config.observability().page_address().empty()) return absl::OkStatus();
    RUBATO_ASSIGN_OR_RETURN(const std::string url, JobPageUrl(run.config.run_directory()));
    *environment.out << "Page: " << url << std::endl;
    return absl::OkStatus();
  };
  if (run.resume) {
    RUBATO_RETURN_IF_ERROR(CheckResumable(run.config.run_directory(), environment.clock->Now()));
    RUBATO_RETURN_IF_ERROR(CheckSameJob(run.config));
  }
  return ReportRun(run, RunJob(run, "", signals.get(), environment), environment);
}

}  // namespace

void AddTrainCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("train", "Run a job on this machine");
  auto options = std::make_shared<TrainOptions>();
  AddRunOptions(command, &options->run);
  command->add_flag("--page{127.0.0.1:0}", options->page,
                    "Serve a page of the running job, on a free port of this machine or, with --page=HOST:PORT, there");
  command->callback([options, environment, exit_code] {
    absl::Status status = Train(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "train", status);
  });
}

}  // namespace rubato
