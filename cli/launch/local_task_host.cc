#include "cli/launch/local_task_host.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/launch/gpu_assignment.h"
#include "cli/launch/gpu_count.h"
#include "cli/launch/worker_cpus.h"
#include "common/config/fingerprint.h"
#include "common/security/open_security.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

constexpr int kLogLines = 15;
// Exit status of a coordinator that refuses its config or flags.
constexpr int kUsageExit = 2;

// Listening on a free port of all of the machine's addresses.
constexpr char kListenEverywhere[] = "0.0.0.0:0";

std::string PortOf(const std::string& address) { return address.substr(address.rfind(':') + 1); }

// Takes what it has to say, which is only that something has happened.
void Drain(int descriptor) {
  char events[4096];
  while (read(descriptor, events, sizeof(events)) > 0) continue;
}

}  // namespace

absl::Status LocalTaskHost::Start() {
  const std::string& directory = options_.config.run_directory();
  RUBATO_RETURN_IF_ERROR(MakeDirectories(JoinPath(directory, "logs")));
  const std::string config_path = JoinPath(directory, "job.textproto");
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(config_path, ConfigText(options_.config)));
  const std::string address_file = JoinPath(directory, "coordinator.address");
  RUBATO_RETURN_IF_ERROR(RemoveFile(address_file));
  RUBATO_RETURN_IF_ERROR(PrepareJobToken(options_.config));
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const TaskSecurity> security,
                          OpenOperatorSecurity(options_.config, clock_->Now()));
  RUBATO_ASSIGN_OR_RETURN(const uint32_t gpus, GpusToAssign());
  const auto start = [this](TaskCommand command, const std::string& metrics_listen) {
    if (!options_.metrics_listen.empty()) {
      command.argv.insert(command.argv.end(), {"--metrics_listen", metrics_listen});
    }
    tasks_.push_back({std::move(command), nullptr, nullptr});
    return Launch(&tasks_.back());
  };
  const std::string host = options_.clients.has_value() ? options_.clients->host : "";
  RUBATO_RETURN_IF_ERROR(start(CoordinatorCommand(options_.binaries, config_path, address_file, options_.resume,
                                                  host.empty() ? kLocalListen : kListenEverywhere),
                               options_.metrics_listen));
  RUBATO_ASSIGN_OR_RETURN(coordinator_, AwaitAddress());
  const std::string port = PortOf(coordinator_);
  if (!host.empty()) coordinator_ = absl::StrCat(host, ":", port);
  // From its second start on: the others know it by this address.
  ResumeCoordinatorAt(host.empty() ? coordinator_ : absl::StrCat("0.0.0.0:", port), &tasks_.front().command);
  client_ = std::make_unique<CoordinatorClient>(host.empty() ? coordinator_ : absl::StrCat("127.0.0.1:", port),
                                                std::move(security));
  std::vector<TaskCommand> others = OtherTasks(config_path, gpus);
  BindWorkers(&others);
  for (TaskCommand& command : others) {
    // What is not ours has no such flag.
    if (!command.variables.empty()) {
      if (!options_.metrics_listen.empty()) command.variables.push_back("RUBATO_METRICS_LISTEN=127.0.0.1:0");
      if (!options_.config.security().insecure()) {
        // Workers may have another working directory.
        const std::filesystem::path folder = CredentialsFolder(options_.config);
        std::error_code error;
        command.variables.push_back(
            absl::StrCat("RUBATO_CREDENTIALS=", std::filesystem::absolute(folder, error).string()));
      }
      tasks_.push_back({std::move(command), nullptr, nullptr});
      if (options_.clients->show_output) Follow(&tasks_.back());
      RUBATO_RETURN_IF_ERROR(Launch(&tasks_.back()));
    } else {
      RUBATO_RETURN_IF_ERROR(start(std::move(command), "127.0.0.1:0"));
    }
  }
  return absl::OkStatus();
}

std::vector<TaskCommand> LocalTaskHost::OtherTasks(const std::string& config_path, uint32_t gpus) const {
  const v1::JobConfig& config = options_.config;
  if (!options_.clients.has_value()) {
    return TaskCommands(options_.binaries, config, config_path, coordinator_, options_.slowed, gpus);
  }
  std::vector<TaskCommand> commands =
      ServerCommands(options_.binaries, config, config_path, coordinator_, options_.clients->host);
  if (!options_.clients->command.has_value()) return commands;
  for (TaskCommand& command :
       ClientCommands(*options_.clients->command, config.cluster().workers(), coordinator_, options_.slowed)) {
    commands.push_back(std::move(command));
  }
  return commands;
}

void LocalTaskHost::BindWorkers(std::vector<TaskCommand>* tasks) const {
  if (!options_.bind_workers) return;
  const bool are_clients = options_.clients.has_value() && options_.clients->command.has_value();
  const uint32_t threads =
      are_clients ? options_.clients->command->threads : options_.config.training().compute_threads();
  const std::vector<int> cpus = CpuOfEachWorker(AllowedCpus(), options_.config.cluster().workers(), threads);
  for (TaskCommand& task : *tasks) {
    if (task.id.role() == v1::TaskId::WORKER && task.id.index() < cpus.size()) task.cpu = cpus[task.id.index()];
  }
}

void LocalTaskHost::Follow(Task* task) {
  const std::string path = LogPath(task->command.id);
  task->output = std::make_unique<LogFollower>(path, absl::StrCat("[", task->command.id.index(), "] "));
  if (!output_events_.open()) output_events_ = FileDescriptor(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  // There has to be a file to watch.
  const FileDescriptor made(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  // Without it lines are seen at the supervisor's next look.
  if (output_events_.open()) inotify_add_watch(output_events_.get(), path.c_str(), IN_MODIFY);
}

void LocalTaskHost::TakeOutput(Task* task, std::vector<std::string>* lines) {
  if (task->output == nullptr) return;
  for (std::string& line : task->process == nullptr ? task->output->ReadAll() : task->output->Read()) {
    lines->push_back(std::move(line));
  }
}

absl::StatusOr<uint32_t> LocalTaskHost::GpusToAssign() {
  const v1::TrainingConfig& training = options_.config.training();
  // Clients choose their devices themselves.
  if (options_.clients.has_value() || !TakesTurns(training)) return 0;
  const absl::StatusOr<uint32_t> gpus =
      CountGpus(options_.binaries.worker, JoinPath(options_.config.run_directory(), "logs/gpus.log"),
                absl::Seconds(options_.config.cluster().start_timeout_seconds()), *clock_, signals_);
  if (absl::IsCancelled(gpus.status())) return gpus.status();
  if (!gpus.ok()) {
    notes_.push_back(absl::StrCat(gpus.status().message(), "; every task takes GPU 0"));
    return 0;
  }
  // If there is none, a worker says better why.
  const std::string problem = *gpus == 0 ? "" : GpuProblem(*gpus, training.gpus());
  if (training.device() == v1::TrainingConfig::CUDA && !problem.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("this machine cannot be used: ", problem));
  }
  return *gpus;
}

absl::StatusOr<std::string> LocalTaskHost::AwaitAddress() {
  const std::string path = JoinPath(options_.config.run_directory(), "coordinator.address");
  const absl::Duration timeout = absl::Seconds(options_.config.cluster().start_timeout_seconds());
  const absl::Time deadline = clock_->Now() + timeout;
  const v1::TaskId coordinator = tasks_.front().command.id;
  std::string previous;
  while (clock_->Now() < deadline) {
    // Read twice alike: it is not being written any more.
    absl::StatusOr<std::string> text = ReadFile(path);
    std::string address = text.ok() ? text->substr(0, text->find('\n')) : "";
    if (absl::StrContains(address, ':') && address == previous) return address;
    previous = address;
    AwaitEvent(signals_->descriptor(), absl::Milliseconds(10));
    if (signals_->Take()) return absl::CancelledError(signals_->reason());
    const std::optional<ExitResult> end = tasks_.front().process->Poll();
    if (!end.has_value()) continue;
    return absl::Status(end->code == kUsageExit ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kAborted,
                        absl::StrCat("the coordinator ended with ", end->Describe(), LogTail(coordinator)));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the coordinator did not listen within ", absl::FormatDuration(timeout), LogTail(coordinator)));
}

absl::Status LocalTaskHost::Launch(Task* task) {
  const std::string log = LogPath(task->command.id);
  RUBATO_ASSIGN_OR_RETURN(task->process, ChildProcess::Start(task->command.argv, {.output = log, .errors = log},
                                                             task->command.variables, task->command.cpu));
  return absl::OkStatus();
}

absl::Status LocalTaskHost::StartAgain(const v1::TaskId& id) {
  for (Task& task : tasks_) {
    if (task.command.id.role() == id.role() && task.command.id.index() == id.index()) return Launch(&task);
  }
  return absl::InternalError(absl::StrCat(TaskName(id), " is not a task of this job"));
}

void LocalTaskHost::AwaitEvent(int descriptor, absl::Duration timeout) {
  // poll(2) passes over a descriptor of -1.
  std::vector<struct pollfd> events = {{descriptor, POLLIN, 0}, {output_events_.get(), POLLIN, 0}};
  for (const Task& task : tasks_) {
    if (task.process != nullptr) events.push_back({task.process->descriptor(), POLLIN, 0});
  }
  const int64_t milliseconds = std::max<int64_t>(1, absl::ToInt64Milliseconds(timeout));
  poll(events.data(), static_cast<nfds_t>(events.size()), static_cast<int>(milliseconds));
}

TaskHost::News LocalTaskHost::Watch() {
  News news;
  news.notes = std::exchange(notes_, {});
  if (output_events_.open()) Drain(output_events_.get());
  for (Task& task : tasks_) {
    if (task.process == nullptr) continue;
    const std::optional<ExitResult> result = task.process->Poll();
    if (result.has_value()) {
      news.ended.push_back({task.command.id, *result});
      task.process.reset();
    }
    TakeOutput(&task, &news.output);
  }
  return news;
}

bool LocalTaskHost::AnyLeft() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) { return task.process != nullptr; });
}

absl::StatusOr<v1::JobStatus> LocalTaskHost::GetStatus(absl::Duration timeout) { return client_->GetStatus(timeout); }

absl::Status LocalTaskHost::AskToStop(const std::string& reason, absl::Duration timeout) {
  return client_->StopJob(reason, timeout);
}

void LocalTaskHost::Terminate() { SignalAll(SIGTERM); }

void LocalTaskHost::Kill() { SignalAll(SIGKILL); }

void LocalTaskHost::SignalAll(int signal) {
  for (Task& task : tasks_) {
    if (task.process != nullptr) task.process->Signal(signal);
  }
}

absl::Status LocalTaskHost::Finish() {
  // Destroying a process object kills the process and waits for it.
  for (Task& task : tasks_) task.process.reset();
  return absl::OkStatus();
}

std::string LocalTaskHost::Describe(const v1::TaskId& task) const {
  return task.role() == v1::TaskId::COORDINATOR ? "the coordinator" : TaskName(task);
}

std::string LocalTaskHost::LogTail(const v1::TaskId& task) {
  const std::string path = LogPath(task);
  std::string indented;
  const std::string lines = LastLines(path, kLogLines);
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&indented, "\n    ", line);
  }
  if (indented.empty()) return absl::StrCat("; ", path, " is empty");
  return absl::StrCat("; the end of ", path, ":", indented);
}

std::string LocalTaskHost::LogPath(const v1::TaskId& task) const {
  return JoinPath(JoinPath(options_.config.run_directory(), "logs"), TaskFileName(task.role(), task.index()) + ".log");
}

}  // namespace rubato
