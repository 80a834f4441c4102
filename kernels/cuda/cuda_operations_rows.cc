// Parts of rows, and vectors that are side by side in them.
#include "common/status.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/interaction.h"

namespace rubato::cuda {
namespace {

InteractionShape InteractionShapeOf(int64_t width, const DeviceTensor& x) {
  return {.type = x.type(), .rows = x.rows(), .vectors = x.shape()[1] / width, .width = width};
}

}  // namespace

absl::Status CudaOperations::CopyColumns(const ColumnRange& range, bool accumulate, const DeviceTensor& x,
                                         const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::CopyColumns(work.stream(), x.type(), range, accumulate, x.rows(), InBytes(x), x.columns(), OutBytes(y),
                           y.columns());
}

absl::Status CudaOperations::DotInteraction(int64_t width, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::DotInteraction(work.stream(), InteractionShapeOf(width, x), InBytes(x), OutBytes(y));
}

absl::Status CudaOperations::DotInteractionBackward(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,
                                                    const DeviceTensor& dx) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &dy}, {&dx}));
  return cuda::DotInteractionBackward(work.stream(), InteractionShapeOf(width, x), InBytes(x), InBytes(dy),
                                      OutBytes(dx));
}

absl::Status CudaOperations::FactorizationMachine(int64_t width, const DeviceTensor& x, const DeviceTensor& y) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x}, {&y}));
  return cuda::FactorizationMachine(work.stream(), InteractionShapeOf(width, x), InBytes(x), OutBytes(y));
}

absl::Status CudaOperations::FactorizationMachineBackward(int64_t width, const DeviceTensor& x, const DeviceTensor& dy,
                                                          const DeviceTensor& dx) {
  RUBATO_ASSIGN_OR_RETURN(Work work, Begin({&x, &dy}, {&dx}));
  return cuda::FactorizationMachineBackward(work.stream(), InteractionShapeOf(width, x), InBytes(x), InBytes(dy),
                                            OutBytes(dx));
}

}  // namespace rubato::cuda
