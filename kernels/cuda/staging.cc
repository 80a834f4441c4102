#include "kernels/cuda/staging.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "common/status.h"
#include "kernels/cuda/check.h"

namespace rubato::cuda {
namespace {

constexpr int64_t kSlotBytes = 4 << 20;

}  // namespace

absl::StatusOr<Staging::Slot*> Staging::NextSlot() {
  Slot& slot = slots_[next_];
  next_ = (next_ + 1) % slots_.size();
  if (slot.memory == nullptr) {
    RUBATO_ASSIGN_OR_RETURN(slot.memory, memory_->Allocate(kSlotBytes, nullptr));
  }
  if (slot.busy != nullptr) RUBATO_RETURN_IF_ERROR(slot.busy->Wait());
  slot.busy = nullptr;
  return &slot;
}

absl::Status Staging::CopyToDevice(void* to, const void* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kSlotBytes) {
    const auto piece = static_cast<size_t>(std::min(kSlotBytes, bytes - at));
    RUBATO_ASSIGN_OR_RETURN(Slot * slot, NextSlot());
    std::memcpy(slot->memory.get(), static_cast<const char*>(from) + at, piece);
    RUBATO_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(static_cast<char*>(to) + at, slot->memory.get(), piece,
                                                cudaMemcpyHostToDevice, streams_->stream(kCopyIn)));
    RUBATO_ASSIGN_OR_RETURN(slot->busy, Mark::Record(streams_->stream(kCopyIn), 0));
  }
  return absl::OkStatus();
}

absl::Status Staging::CopyToHost(void* to, const void* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kSlotBytes) {
    const auto piece = static_cast<size_t>(std::min(kSlotBytes, bytes - at));
    RUBATO_ASSIGN_OR_RETURN(Slot * slot, NextSlot());
    RUBATO_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(slot->memory.get(), static_cast<const char*>(from) + at, piece,
                                                cudaMemcpyDeviceToHost, streams_->stream(kCopyOut)));
    RUBATO_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(streams_->stream(kCopyOut)));
    std::memcpy(static_cast<char*>(to) + at, slot->memory.get(), piece);
  }
  return absl::OkStatus();
}

}  // namespace rubato::cuda
