#include "worker/task_loop.h"

namespace rubato::worker {

absl::Status TaskLoop::Run() {
  ComputeTask::Legacy legacy;
  while (ComputeTask* const task = Begin(std::move(legacy))) {
    const absl::Status status = task->Run();
    const std::unique_ptr<ComputeTask> ended = End();
    refused_ = task->refused();
    if (!task->restarts()) return status;
    legacy = task->legacy();
  }
  MutexLock lock(mu_);
  return *end_;
}

ComputeTask* TaskLoop::Begin(ComputeTask::Legacy legacy) {
  MutexLock lock(mu_);
  if (!end_.has_value()) task_ = make_(std::move(legacy));
  return task_.get();
}

std::unique_ptr<ComputeTask> TaskLoop::End() {
  MutexLock lock(mu_);
  return std::move(task_);
}

void TaskLoop::Drain() {
  MutexLock lock(mu_);
  if (!end_.has_value()) end_ = absl::OkStatus();
  if (task_ != nullptr) task_->Drain();
}

void TaskLoop::Cancel(absl::Status why) {
  MutexLock lock(mu_);
  end_ = why;
  if (task_ != nullptr) task_->Cancel(std::move(why));
}

}  // namespace rubato::worker
