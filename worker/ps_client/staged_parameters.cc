#include "worker/ps_client/staged_parameters.h"

#include <utility>

#include "common/status.h"

namespace rubato::worker {

void StagedParameters::Keep(const absl::Status& status) {
  if (failed_.ok()) failed_ = status;
}

absl::Status StagedParameters::Synchronize() {
  StepWatchdog::Watch watch(watchdog_, "synchronize");
  return memory_->Synchronize();
}

Parameters::Step StagedParameters::next_step() {
  Keep(PushArrived(/*wait=*/true));
  return servers_->next_step();
}

absl::StatusOr<bool> StagedParameters::AwaitTensor(int tensor) {
  Keep(PushArrived(/*wait=*/true));
  RUBATO_RETURN_IF_ERROR(failed_);
  RUBATO_ASSIGN_OR_RETURN(const bool there, servers_->AwaitTensor(tensor));
  if (!there) return false;
  StepWatchdog::Watch watch(watchdog_, "weights to the device");
  RUBATO_RETURN_IF_ERROR(memory_->Upload(tensor));
  return true;
}

void StagedParameters::Restart() {
  // The servers' answers overwrite the weights that the device may still be reading.
  Keep(Synchronize());
  servers_->Restart();
}

absl::StatusOr<bool> StagedParameters::BeginStep(Step* step) {
  RUBATO_RETURN_IF_ERROR(failed_);
  RUBATO_ASSIGN_OR_RETURN(const bool begun, servers_->BeginStep(step));
  if (!begun) return false;
  step_ = step->step;
  RUBATO_RETURN_IF_ERROR(Compress(!step->plan.uncompressed()));
  return true;
}

absl::Status StagedParameters::Compress(bool compress) {
  if (encoder_ == nullptr || compress == compress_) return absl::OkStatus();
  StepWatchdog::Watch watch(watchdog_, "error-feedback residuals");
  RUBATO_RETURN_IF_ERROR(compress ? encoder_->UseResiduals() : encoder_->KeepResidualsOnHost());
  compress_ = compress;
  return absl::OkStatus();
}

void StagedParameters::PushTensor(int tensor, const Pushed& pushed) {
  // After an error nothing more is pushed: the step cannot be completed.
  if (failed_.ok()) Keep(EnqueuePush(tensor, pushed));
}

absl::Status StagedParameters::EnqueuePush(int tensor, const Pushed& pushed) {
  if (pushed.examples == 0) {
    // There is no gradient whose event says that the device has read the weights, which the answer overwrites.
    RUBATO_RETURN_IF_ERROR(PushArrived(/*wait=*/true));
    RUBATO_RETURN_IF_ERROR(Synchronize());
    servers_->PushTensor(tensor, pushed);
    return absl::OkStatus();
  }
  const bool encodes = encoder_ != nullptr && compress_ && encoder_->Encodes(tensor);
  RUBATO_RETURN_IF_ERROR(encodes ? encoder_->Enqueue(tensor, step_) : memory_->Download(tensor));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Event> copied, backend_->Record());
  pending_.push_back({tensor, pushed, std::move(copied)});
  return PushArrived(/*wait=*/false);
}

absl::Status StagedParameters::PushArrived(bool wait) {
  StepWatchdog::Watch watch(watchdog_, "gradients to the host");
  while (!pending_.empty() && (wait || pending_.front().copied->Done())) {
    const Pending push = std::move(pending_.front());
    pending_.pop_front();
    RUBATO_RETURN_IF_ERROR(push.copied->Wait());
    servers_->PushTensor(push.tensor, push.pushed);
  }
  return absl::OkStatus();
}

absl::Status StagedParameters::AwaitAcknowledgements() {
  Keep(PushArrived(/*wait=*/true));
  RUBATO_RETURN_IF_ERROR(failed_);
  return servers_->AwaitAcknowledgements();
}

}  // namespace rubato::worker
