#ifndef RUBATO_WORKER_TRAINING_CARRIED_STATE_H_
#define RUBATO_WORKER_TRAINING_CARRIED_STATE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model_spec.h"
#include "kernels/backend.h"
#include "proto/coordinator.pb.h"
#include "worker/device/step_watchdog.h"
#include "worker/ps_client/device_encoder.h"
#include "worker/ps_client/gradient_encoder.h"
#include "worker/ps_client/worker_part.h"
#include "worker/training/local_optimizer.h"
#include "worker/training/loss_scaler.h"

namespace rubato::worker {

// What a worker carries from one step to the next, but for its place in the data: the residuals of its encoder, the
// state of its local optimizer, the loss scale. All else that decides about a step's bits follows from the job's seed,
// the worker's index, the step's number and its examples. Used by the trainer's thread, between two steps, or in one
// before its backward pass.
class CarriedState {
 public:
  struct Options {
    // All outlive it.
    const v1::JobDescription* job = nullptr;
    const ModelSpec* spec = nullptr;
    GradientEncoder* encoder = nullptr;
    // The same one if the device encodes, otherwise null.
    DeviceEncoder* device_encoder = nullptr;
    // Null if a step is one batch.
    LocalOptimizer* local = nullptr;
    // Null if the loss is not scaled.
    LossScaler* scaler = nullptr;
    // Of the encoder and the optimizer.
    Backend* backend = nullptr;
    // Is told when the device is waited for. May be null.
    StepWatchdog* watchdog = nullptr;
  };

  explicit CarriedState(const Options& options) : options_(options) {}

  // A part with room for all of it, and nothing in it; or with room for the residuals alone.
  WorkerPart Room() const;
  WorkerPart RoomForResiduals() const;

  // A copy as it is now, or of the residuals alone. Waits for the device. Internal: the device failed.
  absl::StatusOr<WorkerPart> Copy();
  absl::StatusOr<WorkerPart> CopyResiduals();

  // Goes on with what a part says that has room for all, or with its residuals alone. Waits for the device. Internal:
  // the device failed. DataLoss: if the loss is scaled, the part has no scale, or an impossible one.
  absl::Status Put(const WorkerPart& part);
  absl::Status PutResiduals(const WorkerPart& part);

 private:
  int slots() const { return options_.local == nullptr ? 0 : options_.local->slots(); }
  WorkerPart MakeRoom(int slots) const;
  absl::Status FetchResiduals(WorkerPart* part);
  absl::Status FetchSlots(WorkerPart::Chunk* chunk);
  absl::Status SetSlots(const WorkerPart::Chunk& chunk);
  const v1::ChunkPlacement& PlaceOf(const WorkerPart::Chunk& chunk) const {
    return options_.job->chunks(static_cast<int>(chunk.record.chunk()));
  }

  const Options options_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_TRAINING_CARRIED_STATE_H_
