#ifndef RUBATO_KERNELS_CPU_CPU_OPERATIONS_H_
#define RUBATO_KERNELS_CPU_CPU_OPERATIONS_H_

#include <memory>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/conv2d.h"
#include "kernels/operations.h"

namespace rubato {

// Operations on the host's memory, each done when its call returns. Used by one thread at a time.
class CpuOperations : public Operations {
 public:
  // As CpuBackendOptions.
  explicit CpuOperations(int threads, bool im2col_convolutions = false);

  RUBATO_DECLARE_OPERATIONS(override)

 private:
  const int threads_;
  const std::unique_ptr<cpu::Conv2d> conv_;
  cpu::Attention attention_;
};

}  // namespace rubato

#endif  // RUBATO_KERNELS_CPU_CPU_OPERATIONS_H_
