#include "kernels/cuda/work.h"

#include <utility>

#include "common/status.h"

namespace rubato::cuda {
namespace {

constexpr int64_t kGranularity = 256;

}  // namespace

absl::Status ScratchMemory::Reserve(int64_t bytes) {
  if (bytes == 0 || (memory_ != nullptr && memory_->bytes() >= bytes)) return absl::OkStatus();
  RUBATO_ASSIGN_OR_RETURN(memory_, pool_->Allocate(bytes));
  return streams_->Extend(kCompute, *memory_);
}

absl::Status ScratchMemory::Begin() {
  if (!streams_->capturing()) RUBATO_RETURN_IF_ERROR(Grow());
  used_ = needed_ = 0;
  return absl::OkStatus();
}

absl::Status ScratchMemory::Grow() {
  if (overflow_.empty()) return absl::OkStatus();
  overflow_.clear();
  // It has been in use until now.
  if (memory_ != nullptr) RUBATO_RETURN_IF_ERROR(streams_->Extend(kCompute, *memory_));
  memory_ = nullptr;
  RUBATO_ASSIGN_OR_RETURN(memory_, pool_->Allocate(needed_));
  return streams_->Extend(kCompute, *memory_);
}

absl::StatusOr<void*> ScratchMemory::Take(int64_t bytes) {
  const int64_t rounded = (bytes + kGranularity - 1) / kGranularity * kGranularity;
  needed_ += rounded;
  if (memory_ != nullptr && used_ + rounded <= memory_->bytes()) {
    used_ += rounded;
    return static_cast<char*>(memory_->address()) + used_ - rounded;
  }
  if (streams_->capturing()) return absl::FailedPreconditionError("the scratch memory has to grow first");
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<MemoryPool::Block> block, pool_->Allocate(rounded));
  RUBATO_RETURN_IF_ERROR(streams_->Extend(kCompute, *block));
  overflow_.push_back(std::move(block));
  return overflow_.back()->address();
}

}  // namespace rubato::cuda
