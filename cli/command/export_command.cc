#include <memory>

#include "cli/command/commands.h"
#include "cli/export/safetensors.h"

namespace rubato {
namespace {

struct ExportOptions {
  std::string run_directory;
  std::string output;
  std::string checkpoint;
};

}  // namespace

void AddExportCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("export", "Write a run's weights as a safetensors file");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("RUN", options->run_directory, "The run's directory")->required();
  command->add_option("--output", options->output, "The file to write")->required();
  command->add_option("--checkpoint", options->checkpoint,
                      "final, stopped (of a job that was stopped), step150 (of one that trained) or step0 (the initial "
                      "weights). Default: final, or else the newest complete one");
  command->callback([options, environment, exit_code] {
    absl::StatusOr<std::string> exported =
        ExportSafetensors(options->run_directory, options->checkpoint, options->output);
    if (exported.ok()) *environment->out << "Wrote checkpoint " << *exported << " to " << options->output << "\n";
    *exit_code = exported.ok() ? kExitOk : ReportError(*environment, "export", exported.status());
  });
}

}  // namespace rubato
