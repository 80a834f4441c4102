#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/command/chosen_runs.h"
#include "cli/command/commands.h"
#include "cli/command/job_run.h"
#include "cli/command/run_ending.h"
#include "cli/report/target.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;
  std::string output = "comparison";
  std::string baseline;
  std::string target;
};

// The run, with its outcome as its record has it.
absl::StatusOr<ComparedRun> Load(const ChosenRun& chosen, const std::optional<Target>& target, v1::JobConfig* config) {
  RUBATO_ASSIGN_OR_RETURN(*config,
                          LoadJobConfig(JoinPath(chosen.directory, "job.textproto"), {}, {.may_await_model = true}));
  if (target.has_value()) SetTarget(*target, config->mutable_evaluation());
  const std::optional<RunEnding> ending = ReadRunEnding(chosen.directory);
  absl::Status outcome = absl::OkStatus();
  if (!ending.has_value()) {
    outcome = absl::UnavailableError("it goes on, or its coordinator was killed");
  } else if (!ending->ok) {
    outcome = absl::AbortedError(ending->error);
  }
  ComparedRun run = LoadRun(*config, chosen.directory, ".", outcome);
  run.directory = chosen.directory;
  return run;
}

absl::Status AddRun(const std::string& name, ComparedRun run, Comparison* comparison) {
  auto mode = std::find_if(comparison->modes.begin(), comparison->modes.end(),
                           [&](const ComparedMode& known) { return known.name == name; });
  if (mode == comparison->modes.end()) mode = comparison->modes.insert(mode, {name, {}});
  for (const ComparedRun& other : mode->runs) {
    if (other.seed != run.seed) continue;
    return absl::InvalidArgumentError(absl::StrCat("RUN: ", other.directory, " and ", run.directory,
                                                   " are both called \"", name, "\" and have seed ", run.seed,
                                                   "; name them NAME=DIRECTORY"));
  }
  mode->runs.push_back(std::move(run));
  return absl::OkStatus();
}

absl::StatusOr<Comparison> MakeComparison(const ReportOptions& options) {
  RUBATO_ASSIGN_OR_RETURN(const std::vector<ChosenRun> chosen, FindRuns(options.runs));
  std::optional<Target> target_for_all;
  if (!options.target.empty()) {
    absl::StatusOr<Target> parsed = ParseTarget(options.target);
    if (!parsed.ok()) return Annotate(parsed.status(), "--target");
    target_for_all = *parsed;
  }
  Comparison comparison;
  comparison.chosen_afterwards = true;
  std::set<std::string> jobs;
  for (const ChosenRun& one : chosen) {
    v1::JobConfig config;
    RUBATO_ASSIGN_OR_RETURN(ComparedRun run, Load(one, target_for_all, &config));
    const Target target = TargetOf(config.evaluation());
    if (jobs.empty()) {
      comparison.target = target;
    } else if (comparison.target != target) {
      return absl::InvalidArgumentError(absl::StrCat("RUN: the target of ", one.directory, " is ", TargetText(target),
                                                     ", and that of those before ", TargetText(comparison.target),
                                                     "; --target says one for all, and 0 that there is none"));
    }
    jobs.insert(config.name());
    comparison.generated_data = comparison.generated_data || config.data().has_teacher();
    if (chosen.size() == 1) comparison.config_text = ConfigText(config);
    RUBATO_RETURN_IF_ERROR(AddRun(one.name, std::move(run), &comparison));
  }
  comparison.job = absl::StrJoin(jobs, ", ");
  std::vector<std::string> names;
  for (const ComparedMode& mode : comparison.modes) names.push_back(mode.name);
  comparison.baseline = options.baseline;
  if (!options.baseline.empty() && std::find(names.begin(), names.end(), options.baseline) == names.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--baseline: value \"", options.baseline, "\"; allowed: ", absl::StrJoin(names, ", ")));
  }
  return comparison;
}

absl::Status Report(const ReportOptions& options, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(const Comparison comparison, MakeComparison(options));
  RUBATO_RETURN_IF_ERROR(Annotate(MakeDirectories(options.output), "--output"));
  return WriteReports(comparison, options.output, environment);
}

}  // namespace

void AddReportCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("report", "Compare runs that were made earlier");
  auto options = std::make_shared<ReportOptions>();
  command
      ->add_option("RUN", options->runs,
                   "DIRECTORY or NAME=DIRECTORY: a run, or a comparison, whose runs are then all meant; runs of one "
                   "name are one "
                   "mode with several seeds")
      ->required();
  command->add_option("--output", options->output, "The directory for report.html and summary.json")
      ->capture_default_str();
  command->add_option("--baseline", options->baseline,
                      "The name of the runs that the others are compared with; otherwise the first");
  command->add_option("--target", options->target,
                      "The accuracy to reach, or auc:AUC, or rmse:RMSE; otherwise what the runs' configs say");
  command->callback([options, environment, exit_code] {
    const absl::Status status = Report(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "report", status);
  });
}

}  // namespace rubato
