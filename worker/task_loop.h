#ifndef RUBATO_WORKER_TASK_LOOP_H_
#define RUBATO_WORKER_TASK_LOOP_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/mutex.h"
#include "worker/compute_task.h"

namespace rubato::worker {

// Runs a task, and another incarnation of it as often as the coordinator says Restart, in one process. What it is asked
// reaches the incarnation at work, and none begins afterwards. Run() on one thread; Drain() and Cancel() on any, also
// before Run() and after it.
//
//   TaskLoop loop([&](ComputeTask::Legacy legacy) { return std::make_unique<WorkerTask>(...); });
//   const absl::Status status = loop.Run();
class TaskLoop {
 public:
  // Makes the next incarnation. Called by Run(), when there is no other.
  using Make = std::function<std::unique_ptr<ComputeTask>(ComputeTask::Legacy legacy)>;

  explicit TaskLoop(Make make) : make_(std::move(make)) {}
  TaskLoop(const TaskLoop&) = delete;
  TaskLoop& operator=(const TaskLoop&) = delete;

  // Of the last incarnation: ComputeTask::Run and refused. OK, or Cancel's reason, if none could begin.
  absl::Status Run();
  bool refused() const { return refused_; }

  // As of ComputeTask.
  void Drain();
  void Cancel(absl::Status why);

 private:
  // Null when it is time to end.
  ComputeTask* Begin(ComputeTask::Legacy legacy);
  // Takes the task, which has ended, back.
  std::unique_ptr<ComputeTask> End();

  const Make make_;
  bool refused_ = false;
  Mutex mu_;
  std::unique_ptr<ComputeTask> task_ ABSL_GUARDED_BY(mu_);
  // What Run() returns if no other incarnation may begin.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TASK_LOOP_H_
