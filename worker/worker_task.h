#ifndef RUBATO_WORKER_WORKER_TASK_H_
#define RUBATO_WORKER_WORKER_TASK_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/network_link/link_relay.h"
#include "common/shared_memory/arena.h"
#include "proto/coordinator.pb.h"
#include "worker/compute_task.h"
#include "worker/ps_client/cut_writer.h"
#include "worker/training/training_run.h"

namespace rubato::worker {

// A worker process: waits until it is a member of a plan, trains until there is nothing left, and leaves. When it ends
// early, the shards that it has not finished are given to others.
class WorkerTask : public ComputeTask {
 public:
  explicit WorkerTask(Options options);

 private:
  absl::Status Work(const Resources& resources) override;
  void AddMetrics(MetricText* text) override;
  v1::Heartbeat Heartbeat() override;
  std::function<std::shared_ptr<void>(size_t bytes)> SendingMemory(const ModelSpec& spec) override;
  void OnDirectiveLocked(const v1::Directive& directive) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnDrainLocked() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnStopLocked(const absl::Status& why) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Status TrainAsMember(const Resources& resources);
  // Cancelled: the job is over, or the task was asked to stop, before it was one.
  absl::StatusOr<v1::Plan> AwaitMembership(v1::JobDescription* job);
  TrainingRun::Options RunOptions(const Resources& resources, v1::JobDescription job);
  // The callbacks know of the run meanwhile.
  absl::Status Train(const v1::Plan& plan, TrainingRun* run);
  v1::WorkerProgress ProgressLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RecordTraceLocked(const v1::RecordTrace& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsMember(const v1::Plan& plan) const;
  // Whether this is the member with the lowest index, which reports its tensors.
  bool IsFirstMember();

  // Memory that servers on this host read; null if they do not.
  std::shared_ptr<SharedArena> arena_;
  // To the servers; null if the worker is not put behind one.
  std::shared_ptr<LinkRelay> link_;
  // Its parts of checkpoints, of which it may hear before and after it trains.
  CutWriter cuts_;
  TrainingRun* run_ ABSL_GUARDED_BY(mu_) = nullptr;  // Set while training.
  // Of the run that has ended.
  v1::WorkerProgress last_progress_ ABSL_GUARDED_BY(mu_);
  v1::TraceDone last_trace_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_WORKER_TASK_H_
