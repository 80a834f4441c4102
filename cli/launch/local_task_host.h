#ifndef RUBATO_CLI_LAUNCH_LOCAL_TASK_HOST_H_
#define RUBATO_CLI_LAUNCH_LOCAL_TASK_HOST_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/launch/child_process.h"
#include "cli/launch/coordinator_client.h"
#include "cli/launch/log_follower.h"
#include "cli/launch/slow_workers.h"
#include "cli/launch/stop_signals.h"
#include "cli/launch/task_commands.h"
#include "cli/launch/task_host.h"
#include "cli/launch/worker_command.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato {

// Runs a job's tasks as processes of this machine, in <run_directory>: the config in job.textproto, the coordinator's
// address in coordinator.address, each task's output in logs/. No process outlives this object, nor this process.
class LocalTaskHost : public TaskHost {
 public:
  // Of a client's job.
  struct Clients {
    // What its workers run. Absent: somebody else starts them.
    std::optional<WorkerCommand> command;
    // What other hosts call this machine, where workers may be then. Empty: all tasks are on this one.
    std::string host;
    // Whether Watch says what the workers write.
    bool show_output = false;
  };
  struct Options {
    // With defaults filled in; the run directory exists.
    v1::JobConfig config;
    Binaries binaries;
    SlowWorkers slowed;
    // Where the coordinator shows metrics, "host:port"; the other tasks do on free local ports. Empty: nobody does.
    std::string metrics_listen;
    // The job goes on with what the run directory holds.
    bool resume = false;
    // Whether workers that fill this machine stay on one of its CPUs each (CpuOfEachWorker).
    bool bind_workers = true;
    // Absent: the workers are ours.
    std::optional<Clients> clients;
  };

  // `clock` and `signals` outlive it.
  LocalTaskHost(Options options, const Clock* clock, StopSignals* signals)
      : options_(std::move(options)), clock_(clock), signals_(signals) {}

  // Errors of OpenOperatorSecurity. DeadlineExceeded: the coordinator did not listen within
  // cluster.start_timeout_seconds. FailedPrecondition: training.device is CUDA, and there are too few GPUs for
  // training.gpus.
  absl::Status Start() override;
  absl::Status StartAgain(const v1::TaskId& task) override;
  void AwaitEvent(int descriptor, absl::Duration timeout) override;
  News Watch() override;
  bool AnyLeft() const override;
  absl::StatusOr<v1::JobStatus> GetStatus(absl::Duration timeout) override;
  absl::Status AskToStop(const std::string& reason, absl::Duration timeout) override;
  void Terminate() override;
  void Kill() override;
  absl::Status Finish() override;
  std::string Describe(const v1::TaskId& task) const override;
  std::string LogTail(const v1::TaskId& task) override;

  // The coordinator's "host:port" as workers reach it. Empty before Start has returned OK.
  const std::string& coordinator() const { return coordinator_; }

 private:
  struct Task {
    TaskCommand command;
    // Null: it has not been started, or has ended.
    std::unique_ptr<ChildProcess> process;
    // Null: what it writes is not shown.
    std::unique_ptr<LogFollower> output;
  };

  // The tasks beside the coordinator.
  std::vector<TaskCommand> OtherTasks(const std::string& config_path, uint32_t gpus) const;
  // As options_.bind_workers says.
  void BindWorkers(std::vector<TaskCommand>* tasks) const;
  // From now on what the task writes is shown.
  void Follow(Task* task);
  void TakeOutput(Task* task, std::vector<std::string>* lines);

  // That tasks are assigned round-robin; 0 if they are not, or if it cannot be told.
  absl::StatusOr<uint32_t> GpusToAssign();
  absl::StatusOr<std::string> AwaitAddress();
  absl::Status Launch(Task* task);
  void SignalAll(int signal);
  std::string LogPath(const v1::TaskId& task) const;

  const Options options_;
  const Clock* const clock_;
  StopSignals* const signals_;
  // The coordinator first.
  std::vector<Task> tasks_;
  std::unique_ptr<CoordinatorClient> client_;
  std::string coordinator_;
  // Can be read (inotify(7)) when a log that is shown has grown.
  FileDescriptor output_events_;
  // What Start has seen of the GPUs, for the next Watch.
  std::vector<std::string> notes_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_LOCAL_TASK_HOST_H_
