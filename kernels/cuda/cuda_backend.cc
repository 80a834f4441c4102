#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/graph_capture.h"

namespace rubato::cuda {

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Create(const CudaBackendOptions& options) {
  RUBATO_ASSIGN_OR_RETURN(Device device, FindDevice(options.device_index));
  std::unique_ptr<CudaBackend> backend(new CudaBackend(options, std::move(device)));
  RUBATO_RETURN_IF_ERROR(Annotate(backend->Start(), backend->Name()));
  return backend;
}

absl::Status CudaBackend::Start() {
  RUBATO_RETURN_IF_ERROR(context_.Start());
  staging_ = std::make_unique<Staging>(&host_memory_, context_.streams());
  RUBATO_ASSIGN_OR_RETURN(operations_, CudaOperations::Create(options_, &context_));
  return absl::OkStatus();
}

CudaBackend::~CudaBackend() {
  // What libraries have made goes where it was made.
  (void)context_.MakeCurrent();
  // Before anything goes that the work may use.
  if (context_.streams() != nullptr) (void)context_.streams()->Synchronize();
}

std::string CudaBackend::Name() const {
  const std::string libraries = operations_ == nullptr ? "" : operations_->Libraries();
  return absl::StrCat("cuda:", context_.device().index, " (", context_.device().name, libraries.empty() ? "" : ", ",
                      libraries, ")");
}

absl::StatusOr<DeviceTensor> CudaBackend::DoAllocate(Shape shape, ElementType type, int64_t bytes) {
  const std::string text = ShapeText(shape);
  absl::StatusOr<DeviceTensor> tensor = context_.Allocate(std::move(shape), type, bytes);
  if (tensor.ok()) return tensor;
  return Annotate(tensor.status(), absl::StrCat("Allocate: a tensor of ", text, ", ", bytes, " bytes, on ", Name()));
}

absl::Status CudaBackend::Reserve(int64_t tensor_bytes, int64_t workspace_bytes) {
  RUBATO_RETURN_IF_ERROR(context_.MakeCurrent());
  RUBATO_RETURN_IF_ERROR(Annotate(context_.pool()->Reserve(tensor_bytes + workspace_bytes), Name()));
  return context_.scratch()->Reserve(workspace_bytes);
}

absl::StatusOr<std::shared_ptr<void>> CudaBackend::AllocateHost(int64_t bytes) {
  RUBATO_RETURN_IF_ERROR(context_.MakeCurrent());
  return host_memory_.Allocate(bytes, nullptr);
}

absl::StatusOr<std::shared_ptr<void>> CudaBackend::AllocateHostForSending(int64_t bytes) {
  RUBATO_RETURN_IF_ERROR(context_.MakeCurrent());
  return host_memory_.Allocate(bytes, options_.sending_memory);
}

absl::StatusOr<DeviceMemory> CudaBackend::Memory() const {
  RUBATO_RETURN_IF_ERROR(context_.MakeCurrent());
  size_t free = 0, total = 0;
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total));
  return DeviceMemory{.total = static_cast<int64_t>(total),
                      .free = static_cast<int64_t>(free) + context_.pool()->unused_bytes()};
}

absl::Status CudaBackend::DoCopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) {
  RUBATO_RETURN_IF_ERROR(context_.MakeCurrent());
  const int64_t size = ElementBytes(to.type());
  char* address = to.data<char>() + offset * size;
  RUBATO_RETURN_IF_ERROR(context_.streams()->Enqueue(kCopyIn, {}, {BlockOf(to)}));
  if (!host_memory_.IsLocked(from, count * size)) return staging_->CopyToDevice(address, from, count * size);
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(address, from, static_cast<size_t>(count * size), cudaMemcpyHostToDevice,
                                              context_.streams()->stream(kCopyIn)));
  return absl::OkStatus();
}

absl::Status CudaBackend::DoCopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) {
  RUBATO_RETURN_IF_ERROR(context_.MakeCurrent());
  const int64_t size = ElementBytes(from.type());
  const char* address = from.data<const char>() + offset * size;
  RUBATO_RETURN_IF_ERROR(context_.streams()->Enqueue(kCopyOut, {BlockOf(from)}, {}));
  if (!host_memory_.IsLocked(to, count * size)) return staging_->CopyToHost(to, address, count * size);
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, address, static_cast<size_t>(count * size), cudaMemcpyDeviceToHost,
                                              context_.streams()->stream(kCopyOut)));
  return absl::OkStatus();
}

absl::Status CudaBackend::OpenTo(const CudaBackend& peer) {
  const int from = peer.context_.device().index, to = context_.device().index;
  if (from == to || !opened_to_.insert(from).second) return absl::OkStatus();
  int can_reach = 0;
  RUBATO_CUDA_RETURN_IF_ERROR(cudaDeviceCanAccessPeer(&can_reach, from, to));
  // Otherwise CUDA copies through the host.
  if (can_reach == 0) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(peer.context_.MakeCurrent());
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(to, 0);
  if (enabled != cudaErrorPeerAccessAlreadyEnabled) RUBATO_CUDA_RETURN_IF_ERROR(enabled);
  (void)cudaGetLastError();
  return absl::OkStatus();
}

absl::Status CudaBackend::DoCopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) {
  auto* const from = static_cast<CudaBackend*>(peer);
  RUBATO_RETURN_IF_ERROR(OpenTo(*from));
  // The copy runs in a lane of the peer. A lane of this GPU waits for it, and the copy for that lane, so that on both
  // sides what comes before and after it is in order.
  const Stream in = context_.streams()->stream(kCopyIn), out = from->context_.streams()->stream(kCopyOut);
  RUBATO_RETURN_IF_ERROR(context_.MakeCurrent());
  RUBATO_RETURN_IF_ERROR(context_.streams()->Enqueue(kCopyIn, {}, {BlockOf(y)}));
  RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<const Mark> free, Mark::Record(in, 0));
  RUBATO_RETURN_IF_ERROR(from->context_.MakeCurrent());
  RUBATO_RETURN_IF_ERROR(from->context_.streams()->Enqueue(kCopyOut, {BlockOf(x)}, {}));
  RUBATO_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(out, free->event(), 0));
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemcpyPeerAsync(y.data<void>(), context_.device().index, x.data<const void>(),
                                                  from->context_.device().index,
                                                  static_cast<size_t>(y.elements() * ElementBytes(y.type())), out));
  RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<const Mark> copied, Mark::Record(out, 0));
  RUBATO_RETURN_IF_ERROR(context_.MakeCurrent());
  RUBATO_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(in, copied->event(), 0));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Event>> CudaBackend::Record() {
  RUBATO_RETURN_IF_ERROR(context_.MakeCurrent());
  return context_.streams()->Record();
}

std::unique_ptr<GraphReplay> CudaBackend::NewGraphReplay() {
  if (!options_.graphs) return nullptr;
  return std::make_unique<GraphCapture>(context_.device().index, context_.streams(), context_.scratch());
}

absl::Status CudaBackend::Synchronize() {
  RUBATO_RETURN_IF_ERROR(context_.MakeCurrent());
  return context_.streams()->Synchronize();
}

}  // namespace rubato::cuda

namespace rubato {

absl::Status CheckCudaDevice(int device_index) { return cuda::FindDevice(device_index).status(); }

absl::StatusOr<int> CountCudaDevices() { return cuda::CountDevices(); }

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const CudaBackendOptions& options) {
  return cuda::CudaBackend::Create(options);
}

}  // namespace rubato
