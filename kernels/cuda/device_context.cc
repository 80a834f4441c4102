#include "kernels/cuda/device_context.h"

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "common/status.h"
#include "kernels/cuda/check.h"

namespace rubato::cuda {
namespace {

class CudaBuffer : public DeviceBuffer {
 public:
  explicit CudaBuffer(std::unique_ptr<MemoryPool::Block> block)
      : DeviceBuffer(block->address()), block_(std::move(block)) {}

  const MemoryPool::Block* block() const { return block_.get(); }

 private:
  const std::unique_ptr<MemoryPool::Block> block_;
};

MemoryPool::Source PoolSource(int device) {
  return {.allocate = [device](int64_t bytes) -> absl::StatusOr<void*> {
            void* memory = nullptr;
            RUBATO_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
            RUBATO_CUDA_RETURN_IF_ERROR(cudaMalloc(&memory, static_cast<size_t>(bytes)));
            return memory;
          },
          .free = [](void* memory) { (void)cudaFree(memory); }};
}

}  // namespace

const MemoryPool::Block* BlockOf(const DeviceTensor& tensor) {
  return static_cast<const CudaBuffer*>(tensor.buffer())->block();
}

absl::Status DeviceContext::Start() {
  RUBATO_RETURN_IF_ERROR(MakeCurrent());
  pool_ = std::make_unique<MemoryPool>(PoolSource(device_.index));
  RUBATO_ASSIGN_OR_RETURN(streams_, Streams::Create());
  scratch_ = std::make_unique<ScratchMemory>(pool_.get(), streams_.get());
  return absl::OkStatus();
}

absl::Status DeviceContext::MakeCurrent() const {
  RUBATO_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_.index));
  return absl::OkStatus();
}

absl::StatusOr<DeviceTensor> DeviceContext::Allocate(Shape shape, ElementType type, int64_t bytes) {
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<MemoryPool::Block> block, pool_->Allocate(bytes));
  DeviceTensor tensor(std::make_shared<CudaBuffer>(std::move(block)), std::move(shape), type);
  RUBATO_ASSIGN_OR_RETURN(const Work work, Begin({}, {&tensor}));
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(tensor.data<void>(), 0, static_cast<size_t>(bytes), work.stream()));
  return tensor;
}

absl::StatusOr<Work> DeviceContext::Begin(Tensors reads, Tensors writes) {
  RUBATO_RETURN_IF_ERROR(MakeCurrent());
  std::vector<const MemoryPool::Block*> read, written;
  for (const DeviceTensor* tensor : reads) {
    if (!tensor->empty()) read.push_back(BlockOf(*tensor));
  }
  for (const DeviceTensor* tensor : writes) {
    if (!tensor->empty()) written.push_back(BlockOf(*tensor));
  }
  RUBATO_RETURN_IF_ERROR(streams_->Enqueue(kCompute, read, written));
  RUBATO_RETURN_IF_ERROR(scratch_->Begin());
  return Work(streams_->stream(kCompute), scratch_.get());
}

}  // namespace rubato::cuda
