#include "cli/command/client_job.h"

#include <filesystem>
#include <system_error>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/command/mode_choice.h"
#include "common/config/awaited_model.h"
#include "common/config/config_text.h"
#include "common/config/data_paths.h"
#include "common/config/fingerprint.h"
#include "common/config/load.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kMaxTasks = 1024;

// How long workers may take until they take part: their programs import and load what they need first. One that ends in
// that time ends the job anyway.
constexpr double kStartSeconds = 600;

// If servers share so few cores with workers, two partitions are never at work at once, and each has messages of its
// own: a step of 5 ms took 6 % longer.
constexpr unsigned kFewCores = 2;

// Of what a job may be called.
constexpr size_t kNameBytesMax = 128;

// What the file says, without defaults.
absl::StatusOr<v1::JobConfig> ReadConfig(const std::string& path) {
  v1::JobConfig config;
  if (path.empty()) return config;
  RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  RUBATO_RETURN_IF_ERROR(ParseText(text, path, &config));
  return config;
}

absl::Status SetMode(const std::string& text, v1::ConsistencyConfig* consistency) {
  if (text.empty()) {
    if (consistency->mode() == v1::MODE_UNSPECIFIED) consistency->set_mode(v1::SYNC);
    return absl::OkStatus();
  }
  RUBATO_ASSIGN_OR_RETURN(const ModeChoice mode, ParseMode(text, "--mode"));
  consistency->set_mode(mode.mode);
  consistency->set_staleness_bound(mode.staleness_bound);
  if (mode.mode != v1::SYNC) consistency->clear_quorum();
  return absl::OkStatus();
}

bool IsEmptyOrAbsent(const std::string& directory) {
  std::error_code error;
  return !fs::exists(directory, error) || fs::is_empty(directory, error);
}

}  // namespace

void AddTaskCounts(CLI::App* command, const std::string& workers, ClientJobOptions* options) {
  command->add_option(workers, options->workers, "Number of workers; otherwise the config says so")
      ->check(CLI::Range(1u, kMaxTasks));
  command->add_option("--servers", options->servers, "Number of servers, which share the weights; default: 1")
      ->check(CLI::Range(1u, kMaxTasks));
}

void AddClientJobOptions(CLI::App* command, ClientJobOptions* options) {
  AddTaskCounts(command, "-n,--workers", options);
  command->add_option("--mode", options->mode, "The mode that the job starts in: sync, async, ssp:N; default: sync");
  command->add_option("--config", options->config_path,
                      "A job's config, a textproto, without model, data and optimizer");
  command->add_option("--set", options->overrides, "path=value: sets a field of the config; may be repeated")
      ->allow_extra_args(false);
}

absl::StatusOr<v1::JobConfig> MakeClientJob(const ClientJobOptions& options, const std::string& name) {
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, ReadConfig(options.config_path));
  if (!IsClientJob(config)) {
    return absl::InvalidArgumentError(absl::StrCat("--config: ", options.config_path,
                                                   " has a model, data or an optimizer; allowed: none of them, because "
                                                   "the workers' program says what is trained (a job that its config "
                                                   "describes is started with rubato train)"));
  }
  if (config.name().empty()) config.set_name(name);
  if (options.workers.has_value()) config.mutable_cluster()->set_workers(*options.workers);
  if (options.servers.has_value()) config.mutable_cluster()->set_servers(*options.servers);
  if (!config.cluster().has_start_timeout_seconds()) config.mutable_cluster()->set_start_timeout_seconds(kStartSeconds);
  if (!config.cluster().has_partitions_per_server() && std::thread::hardware_concurrency() <= kFewCores) {
    config.mutable_cluster()->set_partitions_per_server(1);
  }
  RUBATO_RETURN_IF_ERROR(SetMode(options.mode, config.mutable_consistency()));
  const std::string what = options.config_path.empty() ? "the job's config" : options.config_path;
  RUBATO_ASSIGN_OR_RETURN(config,
                          ParseJobConfig(ConfigText(config), what, options.overrides, {.may_await_model = true}));
  ResolveReadPaths(fs::path(options.config_path).parent_path().string(), &config);
  return config;
}

std::string NameOfCommand(const std::vector<std::string>& argv) {
  if (argv.empty()) return "job";
  std::string named = argv[0];
  for (size_t i = 1; i < argv.size(); ++i) {
    if (absl::EndsWith(argv[i], ".py") || absl::EndsWith(argv[i], ".sh") || argv[i - 1] == "-m") {
      named = argv[i];
      break;
    }
  }
  std::string name = fs::path(named).filename().string();
  // What stands before the ending, but all of a hidden file's name and of a module's.
  if (absl::EndsWith(name, ".py") || absl::EndsWith(name, ".sh")) name = fs::path(name).stem().string();
  name.resize(std::min(name.size(), kNameBytesMax));
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '_') c = '-';
  }
  return name.empty() ? "job" : name;
}

std::string FreeDirectory(const std::string& directory) {
  std::string candidate = directory;
  for (int i = 2; !IsEmptyOrAbsent(candidate); ++i) candidate = absl::StrCat(directory, "-", i);
  return candidate;
}

}  // namespace rubato
