#ifndef RUBATO_CLI_LAUNCH_TASK_HOST_H_
#define RUBATO_CLI_LAUNCH_TASK_HOST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/launch/child_process.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"

namespace rubato {

// Where the tasks of one job run, and the connection to its coordinator: what a JobSupervisor needs of a deploy target.
// This machine is one (LocalTaskHost), hosts that are reached over ssh are another (SshTaskHost). It decides nothing.
// Not thread-safe; used in the main thread. Its processes may outlive it, so that Finish has to be called.
//
// Tasks are named by role and index; their incarnations are the coordinator's matter.
class TaskHost {
 public:
  struct TaskEnd {
    v1::TaskId task;
    ExitResult result;
    // The target has started it again by itself as often as is allowed.
    bool for_good = false;
  };
  // What has happened since the last look.
  struct News {
    // Each task once for each time that it was started, in the order in which they ended, as far as that is known.
    std::vector<TaskEnd> ended;
    // What else the user should know, a message each: a host that cannot be reached, a task that its host has started
    // again.
    std::vector<std::string> notes;
    // Lines that workers have written, each with its rank before it, of hosts that show them (WorkerCommand).
    std::vector<std::string> output;
  };

  virtual ~TaskHost() = default;

  // Starts the coordinator, and all other tasks once it listens. On an error some of them may run.
  // Cancelled: a signal came. InvalidArgument: the coordinator refused its config. FailedPrecondition: the job cannot
  // run here. Aborted, DeadlineExceeded, Unavailable, Internal: a task could not be started, or does not listen.
  virtual absl::Status Start() = 0;

  // Starts a task that has ended once more, with the same role and index; a coordinator also at the same address, where
  // it goes on from its journal (--resume). Does not wait until it listens. Internal, Unavailable: it could not be
  // started.
  virtual absl::Status StartAgain(const v1::TaskId& task) = 0;

  // Returns when a task may have ended, when `descriptor` can be read, or when the time is over.
  virtual void AwaitEvent(int descriptor, absl::Duration timeout) = 0;
  virtual News Watch() = 0;
  // Whether tasks may still run that can be reached.
  virtual bool AnyLeft() const = 0;

  // The coordinator's word. Unavailable, DeadlineExceeded: it does not answer, or cannot be reached now.
  virtual absl::StatusOr<v1::JobStatus> GetStatus(absl::Duration timeout) = 0;
  virtual absl::Status AskToStop(const std::string& reason, absl::Duration timeout) = 0;

  // Asks all processes to end, and ends them.
  virtual void Terminate() = 0;
  virtual void Kill() = 0;

  // To be called once, at the end: leaves no process, and brings logs and whatever else the tasks have written to this
  // machine. Unavailable: what may be left, or is missing, and where.
  virtual absl::Status Finish() = 0;

  // The task as messages name it: "worker 1", "worker 1 on node7".
  virtual std::string Describe(const v1::TaskId& task) const = 0;
  // What follows "<task> ended" in a message: "; the end of its log:" and the last lines, or why there are none.
  virtual std::string LogTail(const v1::TaskId& task) = 0;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_TASK_HOST_H_
