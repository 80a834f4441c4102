#ifndef RUBATO_KERNELS_CPU_BUFFER_H_
#define RUBATO_KERNELS_CPU_BUFFER_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/device_tensor.h"

// Where the CPU backend's tensors are.
namespace rubato {

// Cache lines and the widest vectors.
inline constexpr int64_t kAlignment = 64;

class CpuBuffer : public DeviceBuffer {
 public:
  explicit CpuBuffer(void* memory) : DeviceBuffer(memory) {}
  ~CpuBuffer() override { std::free(address()); }
};

// Memory that somebody else frees.
class SentBuffer : public DeviceBuffer {
 public:
  explicit SentBuffer(std::shared_ptr<void> memory) : DeviceBuffer(memory.get()), memory_(std::move(memory)) {}

 private:
  const std::shared_ptr<void> memory_;
};

// Zeroed, or null.
inline void* AllocateZeros(int64_t bytes) {
  const int64_t padded = (bytes / kAlignment + 1) * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, padded);
  if (memory != nullptr) std::memset(memory, 0, padded);
  return memory;
}

}  // namespace rubato

#endif  // RUBATO_KERNELS_CPU_BUFFER_H_
