#include "kernels/cuda/graph_capture.h"

#include <cuda_runtime_api.h>

#include "common/status.h"
#include "kernels/cuda/check.h"

namespace rubato::cuda {
namespace {

// Later tries would end as these.
constexpr int kLastTry = 4;
// A kernel alone is launched as fast as a graph.
constexpr size_t kFewestKernels = 2;

}  // namespace

GraphCapture::~GraphCapture() {
  if (graph_ == nullptr) return;
  (void)cudaSetDevice(device_);
  (void)cudaStreamSynchronize(streams_->stream(kCompute));
  (void)cudaGraphExecDestroy(graph_);
}

absl::Status GraphCapture::Run(absl::FunctionRef<absl::Status()> enqueue) {
  if (graph_ == nullptr) {
    ++runs_;
    if (runs_ == 1 || runs_ > kLastTry || !Record(enqueue).ok()) return enqueue();
  }
  return Launch();
}

absl::Status GraphCapture::Record(absl::FunctionRef<absl::Status()> enqueue) {
  RUBATO_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  RUBATO_RETURN_IF_ERROR(scratch_->Grow());
  Streams::Uses uses;
  const Stream stream = streams_->stream(kCompute);
  // Other threads may allocate memory meanwhile.
  RUBATO_CUDA_RETURN_IF_ERROR(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  streams_->BeginCapture(&uses);
  absl::Status status = enqueue();
  streams_->EndCapture();
  cudaGraph_t graph = nullptr;
  status.Update(StatusOf(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture"));
  size_t kernels = 0;
  if (status.ok()) status = StatusOf(cudaGraphGetNodes(graph, nullptr, &kernels), "cudaGraphGetNodes");
  if (status.ok() && kernels < kFewestKernels) {
    runs_ = kLastTry;
    status = absl::FailedPreconditionError("there is nothing to gain");
  }
  if (status.ok()) status = StatusOf(cudaGraphInstantiate(&graph_, graph, 0), "cudaGraphInstantiate");
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  if (!status.ok()) {
    graph_ = nullptr;
    return status;
  }
  uses_ = std::move(uses);
  memory_ = scratch_->memory();
  return absl::OkStatus();
}

absl::Status GraphCapture::Launch() {
  RUBATO_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  RUBATO_RETURN_IF_ERROR(streams_->Enqueue(kCompute, uses_.reads, uses_.writes));
  RUBATO_CUDA_RETURN_IF_ERROR(cudaGraphLaunch(graph_, streams_->stream(kCompute)));
  return absl::OkStatus();
}

}  // namespace rubato::cuda
