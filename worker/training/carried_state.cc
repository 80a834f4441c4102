#include "worker/training/carried_state.h"

#include <utility>

#include "common/status.h"
#include "worker/ps_client/part_room.h"

namespace rubato::worker {

WorkerPart CarriedState::MakeRoom(int slots) const {
  return MakePartRoom(*options_.job, *options_.spec, options_.encoder, slots);
}

WorkerPart CarriedState::Room() const { return MakeRoom(slots()); }

WorkerPart CarriedState::RoomForResiduals() const { return MakeRoom(0); }

absl::Status CarriedState::FetchResiduals(WorkerPart* part) {
  if (options_.device_encoder != nullptr) RUBATO_RETURN_IF_ERROR(options_.device_encoder->FetchResiduals());
  for (WorkerPart::Chunk& chunk : part->chunks) chunk.residual = *options_.encoder->residual(chunk.record.chunk());
  return absl::OkStatus();
}

absl::StatusOr<WorkerPart> CarriedState::CopyResiduals() {
  StepWatchdog::Watch watch(options_.watchdog, "error-feedback residuals from the device");
  WorkerPart part = RoomForResiduals();
  RUBATO_RETURN_IF_ERROR(FetchResiduals(&part));
  return part;
}

absl::StatusOr<WorkerPart> CarriedState::Copy() {
  StepWatchdog::Watch watch(options_.watchdog, "state for a checkpoint from the device");
  WorkerPart part = Room();
  RUBATO_RETURN_IF_ERROR(FetchResiduals(&part));
  if (options_.scaler != nullptr) part.state = options_.scaler->state();
  if (slots() == 0) return part;
  for (WorkerPart::Chunk& chunk : part.chunks) RUBATO_RETURN_IF_ERROR(FetchSlots(&chunk));
  RUBATO_RETURN_IF_ERROR(options_.backend->Synchronize());
  return part;
}

absl::Status CarriedState::FetchSlots(WorkerPart::Chunk* chunk) {
  const v1::ChunkPlacement& place = PlaceOf(*chunk);
  const int tensor = static_cast<int>(place.tensor());
  for (size_t slot = 0; slot < chunk->slots.size(); ++slot) {
    RUBATO_RETURN_IF_ERROR(options_.local->FetchSlot(tensor, static_cast<int>(slot), place.offset(), place.length(),
                                                     chunk->slots[slot].data()));
  }
  chunk->record.set_updates(options_.local->updates(tensor));
  return absl::OkStatus();
}

absl::Status CarriedState::Put(const WorkerPart& part) {
  if (options_.scaler != nullptr) RUBATO_RETURN_IF_ERROR(options_.scaler->Restore(part.state));
  RUBATO_RETURN_IF_ERROR(PutResiduals(part));
  if (slots() == 0) return absl::OkStatus();
  StepWatchdog::Watch watch(options_.watchdog, "state of a checkpoint to the device");
  for (const WorkerPart::Chunk& chunk : part.chunks) RUBATO_RETURN_IF_ERROR(SetSlots(chunk));
  return options_.backend->Synchronize();
}

absl::Status CarriedState::SetSlots(const WorkerPart::Chunk& chunk) {
  const v1::ChunkPlacement& place = PlaceOf(chunk);
  const int tensor = static_cast<int>(place.tensor());
  for (size_t slot = 0; slot < chunk.slots.size(); ++slot) {
    RUBATO_RETURN_IF_ERROR(options_.local->SetSlot(tensor, static_cast<int>(slot), place.offset(), place.length(),
                                                   chunk.slots[slot].data()));
  }
  options_.local->set_updates(tensor, chunk.record.updates());
  return absl::OkStatus();
}

absl::Status CarriedState::PutResiduals(const WorkerPart& part) {
  rubato::worker::PutResiduals(part, options_.encoder);
  if (options_.device_encoder == nullptr) return absl::OkStatus();
  StepWatchdog::Watch watch(options_.watchdog, "error-feedback residuals to the device");
  return options_.device_encoder->UseResiduals();
}

}  // namespace rubato::worker
