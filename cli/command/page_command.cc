#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/command/chosen_runs.h"
#include "cli/command/commands.h"
#include "cli/command/job_page_url.h"
#include "cli/command/runs_page.h"
#include "cli/command/served_page.h"
#include "cli/launch/stop_signals.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "web/page.h"

namespace rubato {
namespace {

struct PageOptions {
  std::vector<std::string> runs;
  std::string listen = "127.0.0.1:0";
  std::string output;
};

absl::Status ShowPage(const PageOptions& options, const Environment& environment) {
  RunsPage page([&] { return FindRunsSoFar(options.runs); },
                [&](absl::string_view error) { *environment.err << error << std::endl; });
  RUBATO_RETURN_IF_ERROR(page.Read());
  if (!options.output.empty()) {
    page.News();
    RUBATO_RETURN_IF_ERROR(Annotate(WriteFileAtomically(options.output, PageOf(page.Everything())), "--output"));
    *environment.out << "Page: " << options.output << std::endl;
    return absl::OkStatus();
  }
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<StopSignals> signals, StopSignals::Create());
  RUBATO_ASSIGN_OR_RETURN(const ServedPage served, ServePage("--listen", options.listen, &page, environment.clock));
  for (const std::string& run : options.runs) {
    const absl::StatusOr<std::string> url = JobPageUrl(run);
    if (url.ok()) *environment.out << "Page of the job in " << run << ", which changes it: " << *url << "\n";
  }
  *environment.out << "Page: " << served.url << " (until Ctrl-C)" << std::endl;
  pollfd wait = {signals->descriptor(), POLLIN, 0};
  while (!signals->Take()) poll(&wait, 1, -1);
  return absl::OkStatus();
}

}  // namespace

void AddPageCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("page", "Show runs on a page, while they go on and afterwards");
  auto options = std::make_shared<PageOptions>();
  command
      ->add_option("RUN", options->runs,
                   "DIRECTORY or NAME=DIRECTORY: a run, or a comparison, whose runs are then all shown")
      ->required();
  command
      ->add_option(
          "--listen", options->listen,
          "host:port to serve it on; port 0 takes a free one; what others reach needs the token of the printed address")
      ->capture_default_str();
  command->add_option("--output", options->output, "Write the page as it is now into this file, and serve nothing");
  command->callback([options, environment, exit_code] {
    const absl::Status status = ShowPage(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "page", status);
  });
}

}  // namespace rubato
