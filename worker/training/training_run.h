#ifndef RUBATO_WORKER_TRAINING_TRAINING_RUN_H_
#define RUBATO_WORKER_TRAINING_TRAINING_RUN_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/model_spec.h"
#include "common/network_link/link_relay.h"
#include "common/part_copies/part_peers.h"
#include "common/security/task_security.h"
#include "common/session/clock_offset.h"
#include "common/shared_memory/arena.h"
#include "common/straggler/straggler_model.h"
#include "common/trace/timed_trace.h"
#include "common/trace/trace_recorder.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/prefetcher.h"
#include "worker/device/step_watchdog.h"
#include "worker/device/worker_model.h"
#include "worker/ps_client/cut_writer.h"
#include "worker/ps_client/device_encoder.h"
#include "worker/ps_client/gradient_encoder.h"
#include "worker/ps_client/model_memory.h"
#include "worker/ps_client/ps_client.h"
#include "worker/ps_client/staged_parameters.h"
#include "worker/training/batch_source.h"
#include "worker/training/carried_state.h"
#include "worker/training/dynamic_source.h"
#include "worker/training/local_optimizer.h"
#include "worker/training/loss_scaler.h"
#include "worker/training/slowdown.h"
#include "worker/training/tensor_reporter.h"
#include "worker/training/trainer.h"

namespace rubato::worker {

// A member's training, from its membership in the job to its end: a trainer, and the batches, the memory and the
// connections to the servers that it works with. Create, Train and SaveResiduals on one thread, which is that of the
// model; the rest on any.
//
//   RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<TrainingRun> run, TrainingRun::Create(std::move(options)));
//   RUBATO_RETURN_IF_ERROR(run->Train(plan));
//   RUBATO_RETURN_IF_ERROR(run->SaveResiduals());
class TrainingRun {
 public:
  struct Options {
    // Pointers outlive the run.
    const v1::JobConfig* config = nullptr;
    v1::TaskId task;
    // How it proves that it belongs to the job, and whom it believes to. Null: it does not, and everybody.
    std::shared_ptr<const TaskSecurity> security = nullptr;
    v1::JobDescription job;
    const ModelSpec* spec = nullptr;
    std::shared_ptr<const Dataset> dataset;
    WorkerModel* model = nullptr;
    StepWatchdog* watchdog = nullptr;
    // Where the model's gradients are, for servers on this host. Null: they are sent.
    std::shared_ptr<SharedArena> arena;
    // How the worker is slowed down; nothing: it is not.
    StragglerModel slow;
    // The network link that it is behind. Null: none.
    std::shared_ptr<LinkRelay> link;
    // Sends to the coordinator; a message may be lost.
    std::function<void(v1::TaskMessage)> send;
    // Sends a heartbeat before what is sent from then on.
    std::function<void()> beat;
    // Writes this worker's parts of cuts.
    CutWriter* cuts = nullptr;
    // Whether the task is about to end, so that Create need not wait for others.
    std::function<bool()> cancelled = [] { return false; };
    // By how much the coordinator's clock is ahead.
    std::function<std::optional<ClockOffset::Estimate>()> clock_offset;
    // Whether this worker is the one that reports its tensors.
    std::function<bool()> is_reporter;
    Clock* clock = nullptr;
    Logger* log = nullptr;
  };

  // Allocates what copies take, and reads the worker's part of the cut that the job goes on from, or the residuals of
  // the checkpoint that it starts from. Errors of ModelMemory, LocalOptimizer, DeviceEncoder and Prefetcher, and of
  // ReadWorkerPart.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Create(Options options);
  // Waits for the devices.
  ~TrainingRun();
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // From the plan's first step on. Errors of Trainer::Run. Once.
  absl::Status Train(const v1::Plan& plan);
  // After Train: writes the residuals beside the job's last checkpoint. Errors of the device and of WriteWorkerPart.
  absl::Status SaveResiduals();
  // After Train: whether Drain is why it returned.
  bool drained() const { return trainer_->drained(); }

  // Lets Train return OK when the step at work, if any, is pushed and acknowledged.
  void Drain() { trainer_->Drain(); }
  // Lets it return `status`, or Cancelled, soon.
  void Cancel(absl::Status status) {
    slowdown_.End();
    client_->Cancel(std::move(status));
    prefetcher_->Shutdown();
  }
  void OnGrant(const v1::ShardGrant& grant);
  // Trace for a time; and what the last such request came to.
  void Record(const v1::RecordTrace& request) { timed_trace_.Record(request); }
  v1::TraceDone last_trace() { return timed_trace_.last(); }
  // What a heartbeat says, but for the learning rate.
  void Describe(v1::WorkerProgress* progress);

 private:
  explicit TrainingRun(Options options);

  absl::Status Prepare();
  absl::Status CreateEncoder();
  absl::Status Restore();
  absl::Status RestoreCut(const v1::Cut& cut);
  absl::Status CreateSource();
  void CreateTrainer();
  // The worker begins the first step of a plan with a cut.
  absl::Status TakeCut(const v1::Plan& plan);

  const Options options_;
  Slowdown slowdown_;
  std::optional<ModelMemory> memory_;
  // Local SGD. Null if a step is one batch.
  std::unique_ptr<LocalOptimizer> local_;
  // The device's, if the host does not reach its memory.
  std::shared_ptr<GradientEncoder> encoder_;
  std::shared_ptr<DeviceEncoder> device_encoder_;  // The same one, or null.
  std::optional<LossScaler> scaler_;               // If the loss is scaled.
  std::optional<CarriedState> carried_;
  std::shared_ptr<const PartPeers> peers_;  // Null: nobody keeps copies.
  TraceRecorder trace_;
  TimedTrace timed_trace_;
  std::unique_ptr<Prefetcher> prefetcher_;
  std::unique_ptr<BatchSource> source_;
  DynamicSource* dynamic_ = nullptr;  // The same one; null if the plan gives out the data.
  std::unique_ptr<PsClient> client_;
  std::unique_ptr<StagedParameters> staged_;  // Null if the host reaches the model's memory.
  std::unique_ptr<TensorReporter> reporter_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_TRAINING_RUN_H_
