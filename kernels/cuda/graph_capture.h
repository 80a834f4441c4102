#ifndef RUBATO_KERNELS_CUDA_GRAPH_CAPTURE_H_
#define RUBATO_KERNELS_CUDA_GRAPH_CAPTURE_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/backend.h"
#include "kernels/cuda/streams.h"
#include "kernels/cuda/work.h"

struct CUgraphExec_st;

namespace rubato::cuda {

// Work that becomes a CUDA graph when it comes the second time: the first call has made what the operations need from
// CUDA, and the scratch memory large enough. What cannot be recorded is enqueued as it is, always.
class GraphCapture : public GraphReplay {
 public:
  // Of this GPU; both outlive it.
  GraphCapture(int device, Streams* streams, ScratchMemory* scratch)
      : device_(device), streams_(streams), scratch_(scratch) {}
  // Waits for what it has enqueued last.
  ~GraphCapture() override;

  absl::Status Run(absl::FunctionRef<absl::Status()> enqueue) override;

 private:
  absl::Status Record(absl::FunctionRef<absl::Status()> enqueue);
  absl::Status Launch();

  const int device_;
  Streams* const streams_;
  ScratchMemory* const scratch_;
  int runs_ = 0;
  CUgraphExec_st* graph_ = nullptr;
  // What the graph uses.
  Streams::Uses uses_;
  std::shared_ptr<const MemoryPool::Block> memory_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_GRAPH_CAPTURE_H_
