#include <memory>

#include "cli/command/commands.h"
#include "cli/export/safetensors.h"

namespace rubato {
namespace {

struct ExportOptions {
  std::string run_directory;
  std::string output;
  int64_t at_step = -1;
};

}  // namespace

void AddExportCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("export", "Write a run's weights as a safetensors file");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("RUN", options->run_directory, "The run's directory")->required();
  command->add_option("--output", options->output, "The file to write")->required();
  command->add_option("--at-step", options->at_step, "0: the initial weights. Otherwise those at the end")
      ->check(CLI::IsMember({0}));
  command->callback([options, environment, exit_code] {
    std::string checkpoint = options->at_step == 0 ? "step0" : "final";
    absl::Status status = ExportSafetensors(options->run_directory, checkpoint, options->output);
    if (status.ok()) *environment->out << "Wrote " << options->output << "\n";
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "export", status);
  });
}

}  // namespace rubato
