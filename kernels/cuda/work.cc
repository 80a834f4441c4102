#include "kernels/cuda/work.h"

#include <utility>

#include "common/status.h"

namespace rubato::cuda {

absl::StatusOr<void*> Work::Take(int64_t bytes) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<MemoryPool::Block> block, pool_->Allocate(bytes));
  RUBATO_RETURN_IF_ERROR(streams_->Extend(kCompute, *block));
  blocks_.push_back(std::move(block));
  return blocks_.back()->address();
}

}  // namespace rubato::cuda
