#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/command/codec_choice.h"
#include "cli/command/commands.h"
#include "cli/command/compared_job.h"
#include "cli/command/comparison_page.h"
#include "cli/command/job_run.h"
#include "cli/command/mode_choice.h"
#include "cli/command/resumable_run.h"
#include "cli/command/run_ending.h"
#include "cli/command/variant_choice.h"
#include "cli/launch/stop_signals.h"
#include "cli/report/target.h"
#include "common/config/fingerprint.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

struct CompareOptions {
  ComparedJobOptions job;
  std::vector<std::string> modes;
  std::vector<std::string> codecs;
  std::vector<std::string> variants;
  // Name of a variant; empty: the first one.
  std::string baseline;
  int seeds = 1;
  // "learning_rate", or nothing.
  std::string tune;
  bool require_target = false;
  // Where the runs' page is served; empty: there is none.
  std::string page;
};

// One of the things that are compared.
struct Variant {
  std::string name;
  std::string directory;
  v1::JobConfig config;
};

// Each mode with each codec, or with the config's own if none is given; nothing else differs between them.
absl::StatusOr<std::vector<Variant>> InModes(const v1::JobConfig& config, const std::vector<ModeChoice>& modes,
                                             const std::vector<CodecChoice>& codecs) {
  std::vector<Variant> variants;
  for (const ModeChoice& mode : modes) {
    RUBATO_ASSIGN_OR_RETURN(v1::JobConfig changed, ConfigInMode(config, mode));
    if (codecs.empty()) variants.push_back({mode.Name(), mode.DirectoryName(), changed});
    for (const CodecChoice& codec : codecs) {
      RUBATO_ASSIGN_OR_RETURN(v1::JobConfig encoded, ConfigWithCodec(changed, codec));
      const std::string directory = absl::StrReplaceAll(codec.Name(), {{":", ""}});
      variants.push_back({absl::StrCat(mode.Name(), " ", codec.Name()),
                          absl::StrCat(mode.DirectoryName(), "-", directory), std::move(encoded)});
    }
  }
  return variants;
}

// What the options ask for: the modes, and whatever else is given by name.
absl::StatusOr<std::vector<Variant>> MakeVariants(v1::JobConfig config, const CompareOptions& options,
                                                  const Environment& environment) {
  std::vector<ModeChoice> modes;
  if (!options.modes.empty() || options.variants.empty()) {
    RUBATO_ASSIGN_OR_RETURN(modes, ParseModes(options.modes, "--modes"));
  }
  RUBATO_ASSIGN_OR_RETURN(const std::vector<CodecChoice> codecs, ParseCodecs(options.codecs, "--codecs"));
  const bool only_sync =
      std::all_of(modes.begin(), modes.end(), [](const ModeChoice& m) { return m.mode == v1::SYNC; });
  if (config.data().dispatch() == v1::DataConfig::STATIC && !(only_sync && options.variants.empty())) {
    *environment.out << "data.dispatch: STATIC is for sync alone; everything uses DYNAMIC here, so that the conditions "
                        "are equal\n";
    config.mutable_data()->set_dispatch(v1::DataConfig::DYNAMIC);
  }
  RUBATO_ASSIGN_OR_RETURN(std::vector<Variant> all, InModes(config, modes, codecs));
  std::vector<std::string> taken;
  for (const Variant& variant : all) taken.push_back(variant.directory);
  RUBATO_ASSIGN_OR_RETURN(const std::vector<VariantChoice> named, ParseVariants(options.variants, taken, "--variant"));
  for (const VariantChoice& variant : named) {
    RUBATO_ASSIGN_OR_RETURN(v1::JobConfig changed, ConfigOfVariant(config, variant));
    all.push_back({variant.name, variant.name, std::move(changed)});
  }
  return all;
}

// The variant that the others are compared with.
absl::StatusOr<std::string> ChooseBaseline(const std::string& wanted, const std::vector<Variant>& variants) {
  if (wanted.empty()) return variants.front().name;
  std::vector<std::string> names;
  for (const Variant& variant : variants) {
    if (variant.name == wanted) return wanted;
    names.push_back(variant.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--baseline: value \"", wanted, "\"; allowed: ", absl::StrJoin(names, ", ")));
}

// What went wrong in the runs, or OK.
absl::Status Verdict(const Comparison& comparison, bool require_target) {
  std::string problems;
  for (const ComparedMode& mode : comparison.modes) {
    for (const ComparedRun& run : mode.runs) {
      if (!run.summary.ok) absl::StrAppend(&problems, "\n", run.directory, ": ", run.summary.error);
      if (run.audit == AuditResult::kBroken)
        absl::StrAppend(&problems, "\n", run.directory, ": the audit found a broken invariant");
      bool reached = !comparison.target.exists() || run.summary.seconds_to_target.has_value();
      if (require_target && run.summary.ok && !reached) {
        absl::StrAppend(&problems, "\n", run.directory, ": ", TargetText(comparison.target), " was not reached");
      }
    }
  }
  return problems.empty() ? absl::OkStatus()
                          : absl::AbortedError(absl::StrCat("not every run is as it should be:", problems));
}

// What one of the runs is of `base`.
PreparedRun RunOfVariant(const PreparedRun& base, const Variant& variant, int seed, const std::string& directory) {
  PreparedRun run = base;
  run.config = variant.config;
  run.config.set_seed(static_cast<uint64_t>(seed));
  run.config.set_run_directory(directory);
  return run;
}

// Runs jobs one after another, until somebody interrupts.
struct Runner {
  const ComparedJob& job;
  const Environment& environment;
  // Null: there is none.
  ComparisonPage* page = nullptr;
  // Of the last run.
  absl::Status outcome = absl::OkStatus();

  bool interrupted() const { return absl::IsCancelled(outcome); }

  // The run of variant and seed in that directory, of an earlier process if that has finished it; `name` is what the
  // page calls it.
  ComparedRun Run(const Variant& variant, int seed, const std::string& directory, const std::string& label,
                  const std::string& name) {
    const std::string parent = job.base.config.run_directory();
    const PreparedRun run = RunOfVariant(job.base, variant, seed, JoinPath(parent, directory));
    if (page != nullptr) page->Begin(name, run.config.run_directory());
    // A comparison that is resumed has runs that are done, one that was interrupted, and others yet to come.
    const std::optional<RunEnding> ending = ReadRunEnding(run.config.run_directory());
    const bool is_done = run.resume && ending.has_value() && ending->ok;
    outcome = is_done ? absl::OkStatus() : job.run_job(run, absl::StrCat(label, "  "));
    if (!outcome.ok()) *environment.out << directory << ": " << outcome.message() << std::endl;
    return LoadRun(run.config, parent, directory, outcome);
  }
};

// Tries learning rates for each variant, rate by rate for the same reason as seed by seed, and gives it the best.
std::vector<Tuning> TuneLearningRates(int seed, std::vector<Variant>* variants, Runner* runner) {
  std::vector<Tuning> tunings;
  for (const Variant& variant : *variants) tunings.push_back({.mode = variant.name});
  const size_t rates = RatesToTry(1).size();
  for (size_t rate = 0; rate < rates && !runner->interrupted(); ++rate) {
    for (size_t i = 0; i < variants->size() && !runner->interrupted(); ++i) {
      Variant tried = (*variants)[i];
      const double learning_rate = RatesToTry(tried.config.optimizer().learning_rate())[rate];
      tried.config.mutable_optimizer()->set_learning_rate(learning_rate);
      const std::string name = absl::StrCat(tried.name, " rate ", learning_rate);
      const ComparedRun run =
          runner->Run(tried, seed, absl::StrCat("tune-", tried.directory, "-", learning_rate), name, name);
      tunings[i].runs.push_back({learning_rate, run.summary});
    }
  }
  for (size_t i = 0; i < variants->size(); ++i) {
    tunings[i].best = BestOf(tunings[i].runs, TargetOf((*variants)[i].config.evaluation()));
    if (!tunings[i].best.has_value()) continue;
    (*variants)[i].config.mutable_optimizer()->set_learning_rate(tunings[i].runs[*tunings[i].best].learning_rate);
  }
  return tunings;
}

absl::Status CheckTuning(const CompareOptions& options) {
  if (options.tune.empty()) return absl::OkStatus();
  if (options.tune != "learning_rate") {
    return absl::InvalidArgumentError(absl::StrCat("--tune: value \"", options.tune, "\"; allowed: learning_rate"));
  }
  if (options.job.command.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--tune is given; allowed: without --command alone, which says its rate itself");
}

// Null: none is asked for.
absl::StatusOr<std::unique_ptr<ComparisonPage>> OpenPage(const std::string& listen, const Environment& environment) {
  if (listen.empty()) return nullptr;
  RUBATO_ASSIGN_OR_RETURN(
      std::unique_ptr<ComparisonPage> page,
      ComparisonPage::Create(
          listen, [&environment](absl::string_view error) { *environment.err << error << std::endl; },
          environment.clock));
  *environment.out << "Page: " << page->url() << std::endl;
  return page;
}

absl::Status Compare(const CompareOptions& options, const Environment& environment) {
  RUBATO_RETURN_IF_ERROR(CheckTuning(options));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<StopSignals> signals, StopSignals::Create());
  RUBATO_ASSIGN_OR_RETURN(const ComparedJob job, PrepareComparedJob(options.job, signals.get(), environment));
  const PreparedRun& base = job.base;
  const std::string parent = base.config.run_directory();
  if (base.resume && !FileExists(JoinPath(parent, "job.textproto"))) {
    return absl::NotFoundError(absl::StrCat("--resume: ", parent, " holds no comparison to go on with"));
  }
  if (base.resume) RUBATO_RETURN_IF_ERROR(CheckSameJob(base.config));
  RUBATO_ASSIGN_OR_RETURN(std::vector<Variant> variants, MakeVariants(base.config, options, environment));
  RUBATO_ASSIGN_OR_RETURN(const std::string baseline, ChooseBaseline(options.baseline, variants));
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(parent, "job.textproto"), ConfigText(base.config)));
  Comparison comparison = NewComparison(base);
  comparison.baseline = baseline;
  for (const Variant& variant : variants) comparison.modes.push_back({variant.name, {}});
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ComparisonPage> page, OpenPage(options.page, environment));
  Runner runner = {job, environment, page.get()};
  if (!options.tune.empty()) comparison.tunings = TuneLearningRates(options.seeds + 1, &variants, &runner);
  // Seed by seed, so that a machine that changes while it works changes for all modes.
  for (int seed = 1; seed <= options.seeds && !runner.interrupted(); ++seed) {
    for (size_t i = 0; i < variants.size() && !runner.interrupted(); ++i) {
      const std::string& name = variants[i].name;
      comparison.modes[i].runs.push_back(runner.Run(variants[i], seed,
                                                    absl::StrCat(variants[i].directory, "-seed", seed),
                                                    absl::StrCat(name, " seed ", seed), name));
    }
  }
  RUBATO_RETURN_IF_ERROR(WriteReports(comparison, parent, environment));
  if (page != nullptr) *environment.out << "Page: rubato page " << parent << " shows it from now on" << std::endl;
  return runner.interrupted() ? runner.outcome : Verdict(comparison, options.require_target);
}

}  // namespace

void AddCompareCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand("compare", "Run a job in several modes, one after another, and compare them");
  auto options = std::make_shared<CompareOptions>();
  AddRunOptions(command, &options->job.run);
  CLI::Option* const hosts =
      command->add_option("--hosts", options->job.ssh.hosts_path,
                          "Run the jobs on these hosts, as rubato deploy ssh does, instead of on this machine");
  AddSshOptions(command, &options->job.ssh);
  command->add_option(
      "--command", options->job.command,
      "What the workers run, as in \"python train.py\", with RUBATO_SEED in its environment; CONFIG has "
      "then no model, data and optimizer, and may be left out");
  AddTaskCounts(command, "--workers", &options->job.client);
  for (const char* option :
       {"--slow", "--network", "--unbound", "--binaries", "--metrics_listen", "--workers", "--servers"}) {
    command->get_option(option)->excludes(hosts);
  }
  for (const char* option :
       {"--package", "--copy", "--identity", "--ssh_option", "--ssh", "--min_free_mib", "--max_clock_offset"}) {
    command->get_option(option)->needs(hosts);
  }
  command
      ->add_option("--modes", options->modes,
                   "The modes, separated by commas: sync, async, ssp:N; required unless there is a --variant")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--variant", options->variants,
                   "\"NAME: PATH=VALUE; ..\": the config with these changes is compared too, as in \"quorum: "
                   "consistency.policy=QUORUM\"; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--codecs", options->codecs,
                   absl::StrCat("How tensors are encoded, separated by commas, of ", CodecChoices(),
                                "; otherwise the config says so"))
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--baseline", options->baseline,
                      "The one of the modes (\"sync bf16\" if there are codecs) that the others are compared with; "
                      "otherwise the first");
  command->add_option("--seeds", options->seeds, "Runs of each mode, with the seeds 1, 2, ...")
      ->check(CLI::Range(1, 1000));
  command->add_option("--tune", options->tune,
                      "learning_rate: tries a quarter, half, twice and four times the config's for everything that is "
                      "compared, with a seed of its own, and compares with the best");
  command->add_flag("--page{127.0.0.1:0}", options->page,
                    "Serve a page of the runs while they are made, on a free port of this machine or, with "
                    "--page=HOST:PORT, there");
  command->add_flag("--require_target", options->require_target, "Fail unless every run reaches the target accuracy");
  command->callback([options, environment, exit_code] {
    absl::Status status = Compare(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "compare", status);
  });
}

}  // namespace rubato
