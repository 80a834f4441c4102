#ifndef RUBATO_WORKER_PS_CLIENT_STAGED_PARAMETERS_H_
#define RUBATO_WORKER_PS_CLIENT_STAGED_PARAMETERS_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "worker/device/step_watchdog.h"
#include "worker/ps_client/device_encoder.h"
#include "worker/ps_client/model_memory.h"
#include "worker/ps_client/parameters.h"

namespace rubato::worker {

// Parameters of a model on devices with memory of their own. Weights are enqueued for the devices as they arrive, in
// front of the forward pass that needs them; gradients, or what the device encodes of them, are enqueued for the host
// as they become ready, behind the backward pass that writes them, and pushed when they are there, while the device
// computes the next ones. A step's gradients are all empty, or none is. Used by the trainer's thread.
class StagedParameters : public Parameters {
 public:
  // All outlive it; the backend is that of the gradients. The encoder may be null if nothing is encoded, and the
  // watchdog, which is told of waits for the device, if nobody watches.
  StagedParameters(Parameters* servers, ModelMemory* memory, DeviceEncoder* encoder, Backend* backend,
                   StepWatchdog* watchdog)
      : servers_(servers), memory_(memory), encoder_(encoder), backend_(backend), watchdog_(watchdog) {}

  // Waits for the gradients of the step before.
  Step next_step() override;
  // Also errors of the device: Internal, here and below.
  absl::StatusOr<bool> AwaitTensor(int tensor) override;
  void Restart() override;
  absl::StatusOr<bool> BeginStep(Step* step) override;
  void PushTensor(int tensor, const Pushed& pushed) override;
  // Rows are on the host, and go as they are.
  void AskRows(int table, const std::vector<uint64_t>& keys) override { servers_->AskRows(table, keys); }
  absl::StatusOr<bool> AwaitRows(int table) override { return servers_->AwaitRows(table); }
  const float* rows(int table) override { return servers_->rows(table); }
  void PushRows(int table, const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
                const Pushed& pushed) override {
    servers_->PushRows(table, keys, gradients, pushed);
  }
  absl::Status AwaitAcknowledgements() override;

 private:
  // A gradient in flight to the host.
  struct Pending {
    int tensor;
    Pushed pushed;
    std::unique_ptr<Event> copied;
  };

  absl::Status EnqueuePush(int tensor, const Pushed& pushed);
  // From the step that begins on.
  absl::Status Compress(bool compress);
  // Pushes what has arrived, in order; all of it with `wait`.
  absl::Status PushArrived(bool wait);
  // Waits for all work of all devices.
  absl::Status Synchronize();
  // Keeps the first error for the next call that can return it.
  void Keep(const absl::Status& status);

  Parameters* const servers_;
  ModelMemory* const memory_;
  DeviceEncoder* const encoder_;
  Backend* const backend_;
  StepWatchdog* const watchdog_;
  int64_t step_ = 0;  // That was begun last.
  bool compress_ = true;
  std::deque<Pending> pending_;
  absl::Status failed_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_PS_CLIENT_STAGED_PARAMETERS_H_
