#include "cli/launch/task_commands.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/launch/gpu_assignment.h"
#include "common/status.h"

namespace rubato {
namespace {

namespace fs = std::filesystem;

// Flags of the coordinator.
constexpr char kListen[] = "--listen";
constexpr char kResume[] = "--resume";
constexpr char kResumeEnded[] = "--resume_ended";

std::vector<std::string> PlacesToLook(const std::string& directory, const std::string& program) {
  if (!directory.empty()) return {directory};
  fs::path folder = fs::path(program).parent_path();
  return {folder.string(), (folder / "../..").lexically_normal().string(), program + ".runfiles/rubato"};
}

absl::StatusOr<std::string> FindBinary(const std::vector<std::string>& places, const std::string& name) {
  for (const std::string& place : places) {
    for (const fs::path& path : {fs::path(place) / name / name, fs::path(place) / name}) {
      std::error_code error;
      if (fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0) return path.string();
    }
  }
  return absl::NotFoundError(absl::StrCat("no program \"", name, "\" in ", absl::StrJoin(places, ", "),
                                          "; build it, or say where it is with --binaries"));
}

TaskCommand Task(v1::TaskId::Role role, uint32_t index, const std::string& binary, const std::string& config_path,
                 const std::string& coordinator) {
  TaskCommand task;
  task.id.set_role(role);
  task.id.set_index(index);
  task.argv = {binary, "--config", config_path, "--task_index", absl::StrCat(index), "--coordinator", coordinator};
  return task;
}

// `host` as for ServerCommands.
TaskCommand Server(uint32_t index, const Binaries& binaries, const std::string& config_path,
                   const std::string& coordinator, const std::string& host) {
  TaskCommand task = Task(v1::TaskId::SERVER, index, binaries.server, config_path, coordinator);
  task.argv.insert(task.argv.end(), {kListen, host.empty() ? kLocalListen : "0.0.0.0:0"});
  if (!host.empty()) task.argv.insert(task.argv.end(), {"--advertise_host", host});
  return task;
}

}  // namespace

absl::StatusOr<Binaries> FindBinaries(const std::string& directory, const std::string& program) {
  RUBATO_ASSIGN_OR_RETURN(Binaries binaries, FindBinariesForClients(directory, program));
  RUBATO_ASSIGN_OR_RETURN(binaries.worker, FindBinary(PlacesToLook(directory, program), "worker"));
  return binaries;
}

absl::StatusOr<Binaries> FindBinariesForClients(const std::string& directory, const std::string& program) {
  const std::vector<std::string> places = PlacesToLook(directory, program);
  Binaries binaries;
  RUBATO_ASSIGN_OR_RETURN(binaries.coordinator, FindBinary(places, "coordinator"));
  RUBATO_ASSIGN_OR_RETURN(binaries.server, FindBinary(places, "server"));
  return binaries;
}

std::string TaskFileName(v1::TaskId::Role role, uint32_t index) {
  const std::string name = absl::AsciiStrToLower(v1::TaskId::Role_Name(role));
  return role == v1::TaskId::COORDINATOR ? name : absl::StrCat(name, "-", index);
}

TaskCommand CoordinatorCommand(const Binaries& binaries, const std::string& config_path, const std::string& port_file,
                               bool resume, const std::string& listen) {
  TaskCommand task;
  task.id.set_role(v1::TaskId::COORDINATOR);
  task.argv = {binaries.coordinator, "--config", config_path, kListen, listen, "--port_file", port_file};
  // Somebody wants the job to go on, also one that was stopped or has failed.
  if (resume) task.argv.push_back(kResumeEnded);
  return task;
}

void ResumeCoordinatorAt(const std::string& address, TaskCommand* command) {
  std::vector<std::string>& argv = command->argv;
  const auto listen = std::find(argv.begin(), argv.end(), kListen);
  if (listen != argv.end() && listen + 1 != argv.end()) *(listen + 1) = address;
  // One that has ended since then stays so.
  argv.erase(std::remove(argv.begin(), argv.end(), kResumeEnded), argv.end());
  if (std::find(argv.begin(), argv.end(), kResume) == argv.end()) argv.push_back(kResume);
}

std::vector<TaskCommand> TaskCommands(const Binaries& binaries, const v1::JobConfig& config,
                                      const std::string& config_path, const std::string& coordinator,
                                      const SlowWorkers& slowed, uint32_t gpus) {
  std::vector<TaskCommand> tasks;
  for (uint32_t i = 0; i < config.cluster().servers(); ++i) {
    tasks.push_back(Server(i, binaries, config_path, coordinator, ""));
  }
  for (uint32_t i = 0; i < config.cluster().workers(); ++i) {
    tasks.push_back(Task(v1::TaskId::WORKER, i, binaries.worker, config_path, coordinator));
    std::vector<std::string>& argv = tasks.back().argv;
    argv.insert(argv.end(), {"--role", "worker"});
    if (const std::string model = SettingOf(i, slowed.models); !model.empty()) {
      argv.insert(argv.end(), {"--slow", model});
    }
    if (const std::string link = SettingOf(i, slowed.networks); !link.empty()) {
      argv.insert(argv.end(), {"--network", link});
    }
  }
  for (uint32_t i = 0; i < config.cluster().evaluators(); ++i) {
    tasks.push_back(Task(v1::TaskId::EVALUATOR, i, binaries.worker, config_path, coordinator));
    tasks.back().argv.insert(tasks.back().argv.end(), {"--role", "evaluator"});
  }
  uint32_t turn = 0;
  for (TaskCommand& task : tasks) {
    if (task.id.role() == v1::TaskId::SERVER) continue;
    if (const std::optional<uint32_t> gpu = AssignedGpu(config.training(), gpus, turn++)) {
      task.argv.insert(task.argv.end(), {"--set", absl::StrCat("training.device_index=", *gpu)});
    }
  }
  return tasks;
}

std::vector<TaskCommand> ServerCommands(const Binaries& binaries, const v1::JobConfig& config,
                                        const std::string& config_path, const std::string& coordinator,
                                        const std::string& host) {
  std::vector<TaskCommand> tasks;
  for (uint32_t i = 0; i < config.cluster().servers(); ++i) {
    tasks.push_back(Server(i, binaries, config_path, coordinator, host));
  }
  return tasks;
}

std::vector<TaskCommand> ClientCommands(const WorkerCommand& command, uint32_t workers, const std::string& coordinator,
                                        const SlowWorkers& slowed) {
  std::vector<TaskCommand> tasks;
  for (uint32_t i = 0; i < workers; ++i) {
    TaskCommand task;
    task.id.set_role(v1::TaskId::WORKER);
    task.id.set_index(i);
    task.argv = command.argv;
    task.variables = WorkerVariables(
        command, coordinator, {i, workers, i, workers, SettingOf(i, slowed.models), SettingOf(i, slowed.networks)});
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace rubato
