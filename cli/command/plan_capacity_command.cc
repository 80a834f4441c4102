#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/capacity/capacity_plan.h"
#include "cli/capacity/plan_report.h"
#include "cli/command/commands.h"
#include "cli/command/job_trace.h"
#include "cli/launch/slow_workers.h"
#include "common/config/load.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/straggler/straggler_trace.h"

namespace rubato {
namespace {

struct PlanCapacityOptions {
  std::string config_path;
  std::vector<std::string> overrides;
  // 0: as the config says.
  uint32_t workers = 0;
  uint32_t servers = 0;
  std::vector<std::string> runs;
  std::vector<std::string> slow;
  std::vector<std::string> network;
  bool one_host = false;
  int processors = 0;
  int64_t steps = 0;
  uint64_t seed = 0;
  bool has_seed = false;
  bool json = false;
};

absl::StatusOr<std::vector<StragglerModel>> StragglersOf(const std::vector<std::string>& slow, uint32_t workers) {
  RUBATO_ASSIGN_OR_RETURN(const SlowWorkers slowed, ParseSlowWorkers(slow, {}, workers));
  std::map<std::string, StragglerModel> models = {{"", StragglerModel()}};
  for (const SlowWorkers::Setting& setting : slowed.models) {
    RUBATO_ASSIGN_OR_RETURN(models[setting.value], LoadStragglerOf("--slow", setting.value));
  }
  std::vector<StragglerModel> stragglers;
  for (uint32_t worker = 0; worker < workers; ++worker) {
    stragglers.push_back(models.at(SettingOf(worker, slowed.models)));
  }
  return stragglers;
}

absl::StatusOr<capacity::CalibrationRun> LoadRun(const std::string& run) {
  absl::StatusOr<std::string> traces = LatestTraces(run);
  if (!traces.ok()) {
    return absl::NotFoundError(absl::StrCat(
        "--calibrate: value \"", run,
        "\" has no traces; allowed: the directory of a run that was recorded: rubato trace ", run,
        " while it trains, or a run with --set training.trace_steps=200 --set training.trace_after_steps=50"));
  }
  absl::StatusOr<capacity::CalibrationRun> loaded = capacity::ReadCalibrationRun(run, *traces);
  return loaded.ok() ? std::move(loaded) : Annotate(loaded.status(), absl::StrCat("--calibrate: value \"", run, "\""));
}

absl::Status PlanCapacity(const PlanCapacityOptions& options, const Environment& environment) {
  std::vector<std::string> overrides = options.overrides;
  if (options.workers > 0) overrides.push_back(absl::StrCat("cluster.workers=", options.workers));
  if (options.servers > 0) overrides.push_back(absl::StrCat("cluster.servers=", options.servers));
  capacity::PlanOptions plan;
  RUBATO_ASSIGN_OR_RETURN(plan.config, LoadJobConfig(options.config_path, overrides));
  const v1::ClusterConfig& cluster = plan.config.cluster();
  RUBATO_ASSIGN_OR_RETURN(plan.stragglers, StragglersOf(options.slow, cluster.workers()));
  RUBATO_ASSIGN_OR_RETURN(plan.links,
                          capacity::ParseClusterLinks(options.network, cluster.workers(), cluster.servers()));
  for (const std::string& run : options.runs) {
    RUBATO_ASSIGN_OR_RETURN(capacity::CalibrationRun loaded, LoadRun(run));
    plan.runs.push_back(std::move(loaded));
  }
  plan.processors = options.processors;
  plan.one_host = options.one_host;
  plan.steps = options.steps;
  plan.seed = options.has_seed ? options.seed : plan.config.seed();
  RUBATO_ASSIGN_OR_RETURN(const capacity::CapacityPlan made, capacity::PlanCapacity(plan));
  *environment.out << (options.json ? capacity::PlanToJson(made) : capacity::FormatPlan(made)) << std::flush;
  return absl::OkStatus();
}

void AddOptions(CLI::App* command, PlanCapacityOptions* options) {
  command->add_option("CONFIG", options->config_path, "The job's config, a textproto")->required();
  command->add_option("--workers", options->workers, "How many; otherwise as the config says")
      ->check(CLI::Range(1, 1024));
  command->add_option("--servers", options->servers, "How many; otherwise as the config says")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--calibrate", options->runs,
                   "The directory of a traced run of the same model; may be repeated, best with 1, 2 and 4 workers")
      ->required()
      ->allow_extra_args(false);
  command->add_option("--set", options->overrides, "path=value: overrides a field of the config; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--slow", options->slow,
                   "worker:INDEX:MODEL, or worker:* for all others: as rubato train has it; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--network", options->network,
                   "LINK of all tasks, as in latency=50us,rate=25gbit, or ROLE:INDEX:LINK, ROLE:*:LINK of workers or "
                   "servers; may be repeated. Default: as the calibration runs had it")
      ->allow_extra_args(false);
  command->add_flag("--one_host", options->one_host,
                    "All tasks share one machine, as with rubato train, instead of having one each");
  options->processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  command
      ->add_option(
          "--processors", options->processors,
          "Of the machine on which the calibration runs were made, and of --one_host; 0: their tasks had a machine "
          "each")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  command
      ->add_option("--steps", options->steps,
                   "Steps of each worker that are measured; otherwise until the rate is known to a percent")
      ->check(CLI::Range(int64_t{10}, int64_t{1'000'000}));
  command->add_flag("--json", options->json, "As JSON");
}

}  // namespace

void AddPlanCapacityCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "plan-capacity", "What a job would do on so many workers and servers: simulated with the costs of traced runs");
  auto options = std::make_shared<PlanCapacityOptions>();
  AddOptions(command, options.get());
  CLI::Option* seed = command->add_option("--seed", options->seed, "Of what is drawn; otherwise the config's");
  command->callback([options, seed, environment, exit_code] {
    options->has_seed = seed->count() > 0;
    absl::Status status = PlanCapacity(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "plan-capacity", status);
  });
}

}  // namespace rubato
