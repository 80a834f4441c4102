#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/check_arguments.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/recorded_work.h"

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

const MemoryPool::Block* BlockOf(const DeviceTensor& tensor) {
  return static_cast<const CudaBuffer*>(tensor.buffer())->block();
}

MemoryPool::Source PoolSource(int device) {
  return {.allocate = [device](int64_t bytes) -> absl::StatusOr<void*> {
            void* memory = nullptr;
            RUBATO_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
            RUBATO_CUDA_RETURN_IF_ERROR(cudaMalloc(&memory, static_cast<size_t>(bytes)));
            return memory;
          },
          .free = [](void* memory) { (void)cudaFree(memory); }};
}

ElementType TypeFor(MatrixPrecision precision) {
  if (precision == MatrixPrecision::kBf16) return ElementType::kBfloat16;
  if (precision == MatrixPrecision::kFp16) return ElementType::kFloat16;
  return ElementType::kFloat32;
}

// What libraries load when they are first used, and graphs.
constexpr int64_t kLoadedBytes = int64_t{512} << 20;

WorkspaceRules WorkspaceFor(const CudaBackendOptions& options, ElementType type, int64_t cudnn_bytes) {
  return {.activation_type = type,
          .fixed_bytes = Cublas::kWorkspaceBytes + CublasLt::kWorkspaceBytes + cudnn_bytes + kLoadedBytes,

          .gathered_bytes = ElementBytes(type),
          .unfolded_elements = options.workspace_elements,
          .score_elements = options.workspace_elements,
          .fused_attention = options.fused_attention && type != ElementType::kFloat32,
          // EncodeTopK: keys and indices, before and after they are sorted, and as much again for the sort.
          .top_k_bytes = 24};
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaBackend>> CudaBackend::Create(const CudaBackendOptions& options) {
  RUBATO_ASSIGN_OR_RETURN(Device device, FindDevice(options.device_index));
  std::unique_ptr<CudaBackend> backend(new CudaBackend(options, std::move(device)));
  RUBATO_RETURN_IF_ERROR(Annotate(backend->Start(), backend->Name()));
  return backend;
}

CudaBackend::CudaBackend(const CudaBackendOptions& options, Device device)
    : options_(options),
      device_(std::move(device)),
      type_(TypeFor(options.precision)),
      workspace_(WorkspaceFor(options, type_, options.cudnn ? kCudnnBytes : 0)) {}

absl::Status CudaBackend::Start() {
  RUBATO_RETURN_IF_ERROR(UseDevice());
  pool_ = std::make_unique<MemoryPool>(PoolSource(device_.index));
  RUBATO_ASSIGN_OR_RETURN(streams_, Streams::Create());
  scratch_ = std::make_unique<ScratchMemory>(pool_.get(), streams_.get());
  staging_ = std::make_unique<Staging>(&host_memory_, streams_.get());
  RUBATO_ASSIGN_OR_RETURN(cublas_, Cublas::Create(streams_->stream(kCompute), pool_.get(), options_.precision));
  RUBATO_ASSIGN_OR_RETURN(cublas_lt_, CublasLt::Create(options_.precision));
  if (options_.cudnn) {
    absl::StatusOr<std::unique_ptr<Cudnn>> cudnn = Cudnn::Create(streams_->stream(kCompute), options_.precision);
    if (!cudnn.ok() && !absl::IsFailedPrecondition(cudnn.status())) return cudnn.status();
    if (cudnn.ok()) cudnn_ = *std::move(cudnn);
  }
  return absl::OkStatus();
}

CudaBackend::~CudaBackend() {
  // What libraries have made goes where it was made.
  (void)UseDevice();
  // Before anything goes that the work may use.
  if (streams_ != nullptr) (void)streams_->Synchronize();
}

std::string CudaBackend::Name() const {
  return absl::StrCat("cuda:", device_.index, " (", device_.name, cudnn_ == nullptr ? "" : ", ",
                      cudnn_ == nullptr ? "" : cudnn_->Name(), ")");
}

absl::Status CudaBackend::UseDevice() const {
  RUBATO_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_.index));
  return absl::OkStatus();
}

absl::StatusOr<Work> CudaBackend::Begin(Tensors reads, Tensors writes) {
  RUBATO_RETURN_IF_ERROR(UseDevice());
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

absl::StatusOr<DeviceTensor> CudaBackend::Allocate(Shape shape, ElementType type) {
  RUBATO_ASSIGN_OR_RETURN(const int64_t bytes, CheckedBytes(shape, type, type_));
  absl::StatusOr<std::unique_ptr<MemoryPool::Block>> block = pool_->Allocate(bytes);
  if (!block.ok()) {
    return Annotate(block.status(),
                    absl::StrCat("Allocate: a tensor of ", ShapeText(shape), ", ", bytes, " bytes, on ", Name()));
  }
  DeviceTensor tensor(std::make_shared<CudaBuffer>(*std::move(block)), std::move(shape), type);
  RUBATO_ASSIGN_OR_RETURN(const Work work, Begin({}, {&tensor}));
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(tensor.data<void>(), 0, static_cast<size_t>(bytes), work.stream()));
  return tensor;
}

absl::Status CudaBackend::Reserve(int64_t tensor_bytes, int64_t workspace_bytes) {
  RUBATO_RETURN_IF_ERROR(UseDevice());
  RUBATO_RETURN_IF_ERROR(Annotate(pool_->Reserve(tensor_bytes + workspace_bytes), Name()));
  return scratch_->Reserve(workspace_bytes);
}

absl::StatusOr<std::shared_ptr<void>> CudaBackend::AllocateHost(int64_t bytes) {
  RUBATO_RETURN_IF_ERROR(UseDevice());
  return host_memory_.Allocate(bytes, nullptr);
}

absl::StatusOr<std::shared_ptr<void>> CudaBackend::AllocateHostForSending(int64_t bytes) {
  RUBATO_RETURN_IF_ERROR(UseDevice());
  return host_memory_.Allocate(bytes, options_.sending_memory);
}

absl::StatusOr<DeviceMemory> CudaBackend::Memory() const {
  RUBATO_RETURN_IF_ERROR(UseDevice());
  size_t free = 0, total = 0;
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free, &total));
  return DeviceMemory{.total = static_cast<int64_t>(total), .free = static_cast<int64_t>(free) + pool_->unused_bytes()};
}

absl::Status CudaBackend::CopyToDevice(const DeviceTensor& to, int64_t offset, int64_t count, const void* from) {
  RUBATO_RETURN_IF_ERROR(CheckRange("CopyToDevice", to, offset, count));
  if (count == 0) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(UseDevice());
  const int64_t size = ElementBytes(to.type());
  char* address = to.data<char>() + offset * size;
  RUBATO_RETURN_IF_ERROR(streams_->Enqueue(kCopyIn, {}, {BlockOf(to)}));
  if (!host_memory_.IsLocked(from, count * size)) return staging_->CopyToDevice(address, from, count * size);
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(address, from, static_cast<size_t>(count * size), cudaMemcpyHostToDevice,
                                              streams_->stream(kCopyIn)));
  return absl::OkStatus();
}

absl::Status CudaBackend::CopyToHost(const DeviceTensor& from, int64_t offset, int64_t count, void* to) {
  RUBATO_RETURN_IF_ERROR(CheckRange("CopyToHost", from, offset, count));
  if (count == 0) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(UseDevice());
  const int64_t size = ElementBytes(from.type());
  const char* address = from.data<const char>() + offset * size;
  RUBATO_RETURN_IF_ERROR(streams_->Enqueue(kCopyOut, {BlockOf(from)}, {}));
  if (!host_memory_.IsLocked(to, count * size)) return staging_->CopyToHost(to, address, count * size);
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, address, static_cast<size_t>(count * size), cudaMemcpyDeviceToHost,
                                              streams_->stream(kCopyOut)));
  return absl::OkStatus();
}

absl::Status CudaBackend::OpenTo(const CudaBackend& peer) {
  if (peer.device_.index == device_.index || !opened_to_.insert(peer.device_.index).second) return absl::OkStatus();
  int can_reach = 0;
  RUBATO_CUDA_RETURN_IF_ERROR(cudaDeviceCanAccessPeer(&can_reach, peer.device_.index, device_.index));
  // Otherwise CUDA copies by way of the host.
  if (can_reach == 0) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(peer.UseDevice());
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(device_.index, 0);
  if (enabled != cudaErrorPeerAccessAlreadyEnabled) RUBATO_CUDA_RETURN_IF_ERROR(enabled);
  (void)cudaGetLastError();
  return absl::OkStatus();
}

absl::Status CudaBackend::CopyFromPeer(Backend* peer, const DeviceTensor& x, const DeviceTensor& y) {
  auto* const from = dynamic_cast<CudaBackend*>(peer);
  if (from == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("CopyFromPeer: ", peer->Name(), " is no peer of ", Name()));
  }
  RUBATO_RETURN_IF_ERROR(CheckSame("CopyFromPeer", "y", y, "x", x));
  if (y.elements() == 0) return absl::OkStatus();
  RUBATO_RETURN_IF_ERROR(OpenTo(*from));
  // The copy runs in a lane of the peer. A lane of this card waits for it, and the copy for that lane, so that on both
  // sides what comes before and after it is in order.
  const Stream in = streams_->stream(kCopyIn), out = from->streams_->stream(kCopyOut);
  RUBATO_RETURN_IF_ERROR(UseDevice());
  RUBATO_RETURN_IF_ERROR(streams_->Enqueue(kCopyIn, {}, {BlockOf(y)}));
  RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<const Mark> free, Mark::Record(in, 0));
  RUBATO_RETURN_IF_ERROR(from->UseDevice());
  RUBATO_RETURN_IF_ERROR(from->streams_->Enqueue(kCopyOut, {BlockOf(x)}, {}));
  RUBATO_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(out, free->event(), 0));
  RUBATO_CUDA_RETURN_IF_ERROR(cudaMemcpyPeerAsync(y.data<void>(), device_.index, x.data<const void>(),
                                                  from->device_.index,
                                                  static_cast<size_t>(y.elements() * ElementBytes(y.type())), out));
  RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<const Mark> copied, Mark::Record(out, 0));
  RUBATO_RETURN_IF_ERROR(UseDevice());
  RUBATO_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(in, copied->event(), 0));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Event>> CudaBackend::Record() {
  RUBATO_RETURN_IF_ERROR(UseDevice());
  return streams_->Record();
}

std::unique_ptr<RepeatedWork> CudaBackend::NewRepeatedWork() {
  if (!options_.graphs) return nullptr;
  return std::make_unique<RecordedWork>(device_.index, streams_.get(), scratch_.get());
}

absl::Status CudaBackend::Synchronize() {
  RUBATO_RETURN_IF_ERROR(UseDevice());
  return streams_->Synchronize();
}

}  // namespace rubato::cuda

namespace rubato {

absl::Status CheckCudaDevice(int device_index) { return cuda::FindDevice(device_index).status(); }

absl::StatusOr<int> CountCudaDevices() { return cuda::CountDevices(); }

absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(const CudaBackendOptions& options) {
  return cuda::CudaBackend::Create(options);
}

}  // namespace rubato
