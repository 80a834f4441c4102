#include "worker/nn/batch_memory.h"

#include <cstring>
#include <utility>

#include "common/status.h"

namespace rubato::worker {
namespace {

constexpr int64_t kElementBytes = 4;

}  // namespace

absl::StatusOr<BatchMemory> BatchMemory::Create(const Options& options) {
  BatchMemory memory(options.backend, options.on_host);
  for (Slot& slot : memory.slots_) {
    RUBATO_ASSIGN_OR_RETURN(slot.inputs, options.backend->Allocate(options.inputs, options.input_type));
    RUBATO_ASSIGN_OR_RETURN(slot.labels, options.backend->Allocate(options.labels, options.label_type));
  }
  return memory;
}

absl::Status BatchMemory::Stage(const Examples& examples) {
  staged_ = false;
  Slot& slot = slots_[1 - current_];
  slot.count = examples.count;
  if (on_host_) {
    const int64_t inputs = slot.inputs.Rows(slot.count).elements(), labels = slot.labels.Rows(slot.count).elements();
    RUBATO_RETURN_IF_ERROR(backend_->CopyToDevice(slot.inputs, 0, inputs, examples.inputs));
    RUBATO_RETURN_IF_ERROR(backend_->CopyToDevice(slot.labels, 0, labels, examples.labels));
    RUBATO_RETURN_IF_ERROR(backend_->Synchronize());
  } else {
    RUBATO_RETURN_IF_ERROR(CopyStaged(examples, &slot));
  }
  staged_ = true;
  return absl::OkStatus();
}

absl::Status BatchMemory::CopyStaged(const Examples& examples, Slot* slot) {
  if (slot->host_labels == nullptr) {
    RUBATO_ASSIGN_OR_RETURN(slot->host_inputs, backend_->AllocateHost(slot->inputs.elements() * kElementBytes));
    RUBATO_ASSIGN_OR_RETURN(slot->host_labels, backend_->AllocateHost(slot->labels.elements() * kElementBytes));
  }
  // The slot's last batch has been computed with long ago, unless it was never begun.
  if (slot->copied != nullptr) RUBATO_RETURN_IF_ERROR(std::exchange(slot->copied, nullptr)->Wait());
  const int64_t inputs = slot->inputs.Rows(slot->count).elements(), labels = slot->labels.Rows(slot->count).elements();
  std::memcpy(slot->host_inputs.get(), examples.inputs, static_cast<size_t>(inputs * kElementBytes));
  std::memcpy(slot->host_labels.get(), examples.labels, static_cast<size_t>(labels * kElementBytes));
  RUBATO_RETURN_IF_ERROR(backend_->CopyToDevice(slot->inputs, 0, inputs, slot->host_inputs.get()));
  RUBATO_RETURN_IF_ERROR(backend_->CopyToDevice(slot->labels, 0, labels, slot->host_labels.get()));
  RUBATO_ASSIGN_OR_RETURN(slot->copied, backend_->Record());
  return absl::OkStatus();
}

absl::Status BatchMemory::Begin() {
  if (!staged_) return absl::FailedPreconditionError("no batch has been staged");
  staged_ = false;
  current_ = 1 - current_;
  return absl::OkStatus();
}

}  // namespace rubato::worker
