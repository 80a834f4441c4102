#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/command/commands.h"
#include "cli/predict/predict.h"
#include "common/log.h"
#include "common/storage/file.h"
#include "kernels/backend_cuda.h"

namespace rubato {
namespace {

struct PredictCommandOptions {
  PredictOptions predict;
  std::string output;
};

// To the file, which is replaced in one step or unchanged.
absl::StatusOr<PredictReport> PredictTo(const std::string& output, const PredictOptions& options) {
  const std::string temporary = absl::StrCat(output, ".tmp");
  std::ofstream file(temporary, std::ios::binary);
  if (!file) return absl::InvalidArgumentError(absl::StrCat("--output: cannot write ", temporary));
  absl::StatusOr<PredictReport> report = Predict(options, &file);
  file.close();
  if (report.ok() && !file) report = absl::UnavailableError(absl::StrCat("cannot write ", temporary));
  if (report.ok()) {
    if (const absl::Status status = RenameFile(temporary, output); !status.ok()) report = status;
  }
  if (!report.ok()) RemoveFile(temporary).IgnoreError();
  return report;
}

int RunPredict(PredictCommandOptions options, const Environment& environment) {
  Logger log("predict", environment.clock, {.quiet = true});
  options.predict.factory = {.cuda = CreateCudaBackend, .count_gpus = CountCudaDevices};
  options.predict.log = &log;
  const bool to_file = !options.output.empty();
  const absl::StatusOr<PredictReport> report =
      to_file ? PredictTo(options.output, options.predict) : Predict(options.predict, environment.out);
  if (!report.ok()) return ReportError(environment, "predict", report.status());
  if (to_file) {
    *environment.out << "Wrote what checkpoint " << report->checkpoint << " says of " << report->examples
                     << " examples to " << options.output << "\n";
  }
  return kExitOk;
}

}  // namespace

void AddPredictCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("predict", "Score each example of a file with a run's weights");
  auto options = std::make_shared<PredictCommandOptions>();
  command->add_option("RUN", options->predict.run_directory, "The run's directory")->required();
  command
      ->add_option("--input", options->predict.input,
                   "A file in the format of the job's data, with labels, which have no effect")
      ->required();
  command->add_option("--output", options->output, "The file to write, a line for each example. Default: the terminal");
  command->add_option("--checkpoint", options->predict.checkpoint,
                      "final, stopped, step150 or step0. Default: final, or else the newest complete one");
  command->add_option("--set", options->predict.overrides,
                      "path=value: where and how to compute, as in training.device=CPU or evaluation.batch_size=1000");
  command->callback([options, environment, exit_code] { *exit_code = RunPredict(*options, *environment); });
}

}  // namespace rubato
