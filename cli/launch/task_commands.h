#ifndef RUBATO_CLI_LAUNCH_TASK_COMMANDS_H_
#define RUBATO_CLI_LAUNCH_TASK_COMMANDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/launch/slow_workers.h"
#include "cli/launch/worker_command.h"
#include "proto/job_config.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// The programs that a job is made of, as paths.
struct Binaries {
  std::string coordinator;
  std::string server;
  // Empty: not needed, because the workers are clients.
  std::string worker;
};

// Looks for each program as <directory>/<name>/<name> (the build's layout) and <directory>/<name> (all in one folder).
// With an empty `directory`: in the folder of `program`, two folders above it, and in its runfiles.
// NotFound: names the program that is missing and where it was looked for.
absl::StatusOr<Binaries> FindBinaries(const std::string& directory, const std::string& program);
// The same for a job whose workers are clients.
absl::StatusOr<Binaries> FindBinariesForClients(const std::string& directory, const std::string& program);

// How one task is started.
struct TaskCommand {
  // Its role and index.
  v1::TaskId id;
  std::vector<std::string> argv;
  // "NAME=value" each, beside the launcher's own environment.
  std::vector<std::string> variables = {};
  // The CPU that it stays on. Nothing: it runs on any.
  std::optional<int> cpu = std::nullopt;
};

// "worker-1", "coordinator": the name of a task's log and of what else a launcher keeps of it.
std::string TaskFileName(v1::TaskId::Role role, uint32_t index);

// Listening on a free port of this machine alone.
inline constexpr char kLocalListen[] = "127.0.0.1:0";

// The coordinator listens on `listen` and writes its address to `port_file`. With `resume` it goes on from the journal
// that the run directory holds.
TaskCommand CoordinatorCommand(const Binaries& binaries, const std::string& config_path, const std::string& port_file,
                               bool resume, const std::string& listen = kLocalListen);

// Makes of a coordinator's command the one that starts it again: it listens on `address` ("host:port") and resumes.
void ResumeCoordinatorAt(const std::string& address, TaskCommand* command);

// Servers, workers and evaluators, in this order; workers and evaluators are assigned the machine's GPUs round-robin
// (gpu_assignment.h). `config_path` holds `config` with its defaults.
std::vector<TaskCommand> TaskCommands(const Binaries& binaries, const v1::JobConfig& config,
                                      const std::string& config_path, const std::string& coordinator,
                                      const SlowWorkers& slowed, uint32_t gpus);

// The servers of a client's job alone, which have no model yet. `host`: what workers on other hosts call this machine;
// empty: all are on this one.
std::vector<TaskCommand> ServerCommands(const Binaries& binaries, const v1::JobConfig& config,
                                        const std::string& config_path, const std::string& coordinator,
                                        const std::string& host);

// Its workers, all on this machine.
std::vector<TaskCommand> ClientCommands(const WorkerCommand& command, uint32_t workers, const std::string& coordinator,
                                        const SlowWorkers& slowed);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_TASK_COMMANDS_H_
