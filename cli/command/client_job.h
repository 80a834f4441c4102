#ifndef RUBATO_CLI_COMMAND_CLIENT_JOB_H_
#define RUBATO_CLI_COMMAND_CLIENT_JOB_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job_config.pb.h"

namespace rubato {

// What the user says of a job whose workers are somebody's program, which brings the model along (docs/decisions/0021).
struct ClientJobOptions {
  // Of a config without model, data and optimizer. Empty: there is none, and everything has its default.
  std::string config_path;
  // These go before the config; "path=value" goes before both.
  std::optional<uint32_t> workers;
  std::optional<uint32_t> servers;
  // As ParseMode reads it. Empty: the config's, or sync.
  std::string mode;
  std::vector<std::string> overrides;
};
// Those that say how many tasks there are; `workers` is what the command calls the number of workers.
void AddTaskCounts(CLI::App* command, const std::string& workers, ClientJobOptions* options);
// All of them.
void AddClientJobOptions(CLI::App* command, ClientJobOptions* options);

// The job's config with all defaults, in which `name` stands if the file has none. If the file does not say
// otherwise, workers have ten minutes to come (cluster.start_timeout_seconds), and servers have one partition if this
// machine has two cores. InvalidArgument, with the flag or field, its value and what is allowed; a config that says
// what is trained is none. NotFound and others: the file cannot be read.
absl::StatusOr<v1::JobConfig> MakeClientJob(const ClientJobOptions& options, const std::string& name);

// What a job is called after its workers' command: the script's name without folder and ending, "train" of
// {"python", "src/train.py", "--lr=1"}, otherwise the program's.
std::string NameOfCommand(const std::vector<std::string>& argv);

// `directory`, or the first of <directory>-2, <directory>-3, ... that is empty or not there.
std::string FreeDirectory(const std::string& directory);

}  // namespace rubato

#endif  // RUBATO_CLI_COMMAND_CLIENT_JOB_H_
