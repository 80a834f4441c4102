#ifndef RUBATO_WORKER_WORKER_TASK_H_
#define RUBATO_WORKER_WORKER_TASK_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/health/health.h"
#include "common/log.h"
#include "common/metrics/task_page.h"
#include "common/mutex.h"
#include "common/session/session.h"
#include "common/shared_memory/arena.h"
#include "common/trace/timed_trace.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/device/backend_choice.h"
#include "worker/device/step_watchdog.h"
#include "worker/device/worker_model.h"
#include "worker/ps_client/device_packer.h"
#include "worker/ps_client/gradient_packer.h"
#include "worker/ps_client/ps_client.h"
#include "worker/ps_client/residual_files.h"
#include "worker/training/dynamic_source.h"
#include "worker/training/trainer.h"

namespace rubato::worker {

// A worker process: registers, waits until it is a member of a plan, trains until there is nothing left, leaves.
class WorkerTask {
 public:
  struct Options {
    v1::JobConfig config;
    v1::TaskId task;
    // "host:port".
    std::string coordinator;
    double slow_factor = 1;
    // Where to answer HTTP requests for metrics, "host:port"; empty: nowhere.
    std::string metrics_listen;
    // Says whether the task is ready for work. Required.
    Health* health = nullptr;
    Clock* clock = nullptr;
    Logger* log = nullptr;
    // Ends the process at once. Called where the device does not answer, so that Run() cannot return. Required.
    std::function<void()> abandon;
    BackendMakers makers;
  };

  explicit WorkerTask(Options options) : options_(std::move(options)) {}

  // Returns when the job, or this worker's part in it, is over. The status says why it was given up.
  absl::Status Run();
  // Whether that is because the machine has not the device or the memory that the config asks for, which was found
  // before the worker joined the job. After Run().
  bool refused() const { return refused_; }

  // Both end Run() early, and the shards that are not finished are given to others. Thread-safe.
  // From a first signal: the step at work is finished, and this worker leaves without blame; Run() returns OK.
  void Drain();
  // Now: what is not acknowledged is given up.
  void Cancel(absl::Status why);

 private:
  // What is there before the job is joined.
  struct Equipment {
    const ModelSpec* spec;
    std::shared_ptr<SharedArena> arena;
    WorkerModel* model;
    StepWatchdog* watchdog;
  };

  // What packs gradients: the device, where the host does not reach its memory.
  struct Packing {
    std::shared_ptr<GradientPacker> packer;
    std::shared_ptr<DevicePacker> on_device;  // The same one, or null.
  };

  absl::StatusOr<std::unique_ptr<TaskPage>> OpenPage();
  void OnDirective(const v1::Directive& directive);
  v1::Heartbeat Heartbeat();
  v1::WorkerProgress ProgressLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Opens the devices, and joins the job only then: until then nobody waits for this worker.
  absl::Status Work(const ModelSpec& spec, std::shared_ptr<const Dataset> dataset);
  absl::StatusOr<v1::Plan> AwaitMembership(v1::JobDescription* job);
  absl::StatusOr<Packing> MakePacking(const v1::JobDescription& job, const Equipment& equipment, bool is_staged);
  absl::Status Train(const Equipment& equipment, const v1::JobDescription& job, const v1::Plan& plan,
                     std::shared_ptr<const Dataset> dataset);
  // What the codecs keep back, from the checkpoint that the job starts from, and into its last one.
  absl::Status RestoreResiduals(const ModelSpec& spec, const v1::JobDescription& job, const Residuals& residuals);
  absl::Status SaveResiduals(const ModelSpec& spec, const v1::JobDescription& job, const Residuals& residuals);
  // What is running is known to the callbacks meanwhile. `dynamic`: null where the plan gives out the data.
  absl::Status RunTrainer(const v1::Plan& plan, PsClient* client, Trainer* trainer, DynamicSource* dynamic,
                          TimedTrace* trace);
  void RecordTraceLocked(const v1::RecordTrace& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The device hangs: tells the coordinator, where it knows of this worker, and ends. On the watchdog's thread.
  void Abandon(const std::string& what);
  void Leave(const absl::Status& status);
  void SendShardRequest(const v1::ShardRequest& request);
  bool IsMember(const v1::Plan& plan) const;
  // Whether this is the member with the lowest index, which reports its tensors.
  bool IsFirstMember();
  TensorReporter::Options DescribeTensors(const ModelSpec& spec, const Model* model, Backend* backend);

  const Options options_;
  std::unique_ptr<Session> session_;  // Set before and reset after everything that uses it.
  bool refused_ = false;

  Mutex mu_;
  CondVar changed_;
  // The coordinator has heard of this worker, or will.
  bool joins_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<v1::JobDescription> job_ ABSL_GUARDED_BY(mu_);
  v1::Plan plan_ ABSL_GUARDED_BY(mu_);  // The newest that the coordinator told.
  std::string waiting_for_ ABSL_GUARDED_BY(mu_);
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // Drain() was called; and it is why Run() ends.
  bool drain_ ABSL_GUARDED_BY(mu_) = false;
  bool drained_ ABSL_GUARDED_BY(mu_) = false;
  // Set while training.
  PsClient* client_ ABSL_GUARDED_BY(mu_) = nullptr;
  Trainer* trainer_ ABSL_GUARDED_BY(mu_) = nullptr;
  v1::WorkerProgress last_progress_ ABSL_GUARDED_BY(mu_);
  DynamicSource* dynamic_ ABSL_GUARDED_BY(mu_) = nullptr;
  TimedTrace* trace_ ABSL_GUARDED_BY(mu_) = nullptr;
  v1::TraceDone last_trace_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_WORKER_TASK_H_
