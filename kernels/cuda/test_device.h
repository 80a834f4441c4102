#ifndef RUBATO_KERNELS_CUDA_TEST_DEVICE_H_
#define RUBATO_KERNELS_CUDA_TEST_DEVICE_H_

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/memory_pool.h"
#include "kernels/cuda/streams.h"
#include "kernels/cuda/work.h"

namespace rubato::cuda {

// Tests of kernels on the first card; skipped, with the reason, where there is none.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status status = FindDevice(0).status(); !status.ok()) GTEST_SKIP() << status.message();
    pool_ = std::make_unique<MemoryPool>(MemoryPool::Source{.allocate = [](int64_t bytes) -> absl::StatusOr<void*> {
                                                              void* memory = nullptr;
                                                              if (cudaMalloc(&memory, static_cast<size_t>(bytes)) ==
                                                                  cudaSuccess)
                                                                return memory;
                                                              return absl::ResourceExhaustedError("cudaMalloc");
                                                            },
                                                            .free = [](void* memory) { (void)cudaFree(memory); }});
    streams_ = *Streams::Create();
  }

  Stream stream() const { return streams_->stream(kCompute); }

  // Device memory with these elements; valid for the whole test.
  template <typename T>
  T* Upload(const std::vector<T>& values) {
    blocks_.push_back(*pool_->Allocate(static_cast<int64_t>(values.size() * sizeof(T))));
    T* memory = static_cast<T*>(blocks_.back()->address());
    const size_t bytes = values.size() * sizeof(T);
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory, values.data(), bytes, cudaMemcpyHostToDevice), cudaSuccess);
    // From memory that is not locked it may return before all is there; stream() does not wait for it.
    EXPECT_EQ(cudaStreamSynchronize(cudaStreamLegacy), cudaSuccess);
    return memory;
  }

  template <typename T>
  std::vector<T> Download(const T* memory, int64_t n) {
    std::vector<T> values(n);
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), memory, n * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

  std::unique_ptr<MemoryPool> pool_;
  std::unique_ptr<Streams> streams_;
  std::vector<std::unique_ptr<MemoryPool::Block>> blocks_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_TEST_DEVICE_H_
