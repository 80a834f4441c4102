#include "kernels/cuda/emulation/gpu.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

namespace rubato::cuda::emulation {
namespace {

constexpr int kGpus = 2;
constexpr size_t kGpuBytes = size_t{8} << 30;
constexpr size_t kPage = 4096;

// Of the calling thread.
thread_local int current_gpu = 0;
thread_local cudaError_t last_error = cudaSuccess;
// The calling thread records a stream's work. What it may not do meanwhile ends that.
thread_local bool capturing = false;
thread_local bool capture_is_good = true;

struct Queue;

// A stream's place after so much of its work.
struct Point {
  std::shared_ptr<Queue> queue;  // Null: before everything.
  int64_t work = 0;
};

struct Work {
  std::function<void()> run;  // Empty: waits.
  Point awaited;
};

struct Queue {
  int gpu = 0;
  std::deque<Work> pending;
  int64_t enqueued = 0, done = 0;
};

bool Reached(const Point& point) { return point.queue == nullptr || point.queue->done >= point.work; }

// Memory, by where it begins.
class Ranges {
 public:
  void Add(const void* begin, size_t bytes) { ranges_[Address(begin)] = bytes; }
  // 0: there is none that begins there.
  size_t Remove(const void* begin) {
    const auto found = ranges_.find(Address(begin));
    if (found == ranges_.end()) return 0;
    const size_t bytes = found->second;
    ranges_.erase(found);
    return bytes;
  }
  bool Hold(const void* begin, size_t bytes) const {
    auto after = ranges_.upper_bound(Address(begin));
    if (after == ranges_.begin()) return false;
    const auto& [at, size] = *std::prev(after);
    return Address(begin) + bytes <= at + size;
  }

 private:
  static uintptr_t Address(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }
  std::map<uintptr_t, size_t> ranges_;
};

// Work that is captured.
using Captured = std::vector<std::function<void()>>;

struct Machine {
  // Held by every call, and while work is done.
  std::recursive_mutex mu;
  std::vector<std::shared_ptr<Queue>> queues;
  Ranges of_gpus, locked;
  size_t used_bytes[kGpus] = {};
  std::map<const void*, int> gpu_of;
  std::minstd_rand random;

  // Does a piece of the queue's work, if that waits for nothing.
  bool Step(Queue& queue) {
    if (queue.pending.empty() || !Reached(queue.pending.front().awaited)) return false;
    const Work work = std::move(queue.pending.front());
    queue.pending.pop_front();
    if (work.run) work.run();
    ++queue.done;
    return true;
  }
  // Some work of some streams, now and then.
  void Stray() {
    if (queues.empty() || random() % 4 != 0) return;
    for (auto steps = random() % 8; steps > 0; --steps) Step(*queues[random() % queues.size()]);
  }
  void Reach(const Point& point) {
    while (!Reached(point)) {
      Stray();
      if (Reached(point)) return;
      if (!Step(*point.queue)) Reach(Point(point.queue->pending.front().awaited));
    }
  }
  void ReachAll() {
    for (const auto& queue : queues) Reach({queue, queue->enqueued});
  }
};

Machine& TheMachine() {
  static auto* const machine = new Machine();
  return *machine;
}

cudaError_t Fail(cudaError_t error) { return last_error = error; }

bool IsCapturing() {
  if (capturing) capture_is_good = false;
  return capturing;
}

}  // namespace
}  // namespace rubato::cuda::emulation

// The runtime's own handles.
struct CUstream_st {
  std::shared_ptr<rubato::cuda::emulation::Queue> queue;
  std::unique_ptr<rubato::cuda::emulation::Captured> capturing;
};

struct CUgraph_st {
  rubato::cuda::emulation::Captured work;
};

struct CUgraphExec_st {
  rubato::cuda::emulation::Captured work;
};

struct CUevent_st {
  int gpu = 0;
  rubato::cuda::emulation::Point point;
};

namespace rubato::cuda::emulation {
namespace {

cudaError_t Append(Stream stream, Work work) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  if (stream == nullptr || stream->queue->gpu != current_gpu) return Fail(cudaErrorInvalidResourceHandle);
  if (stream->capturing != nullptr) {
    if (!work.run) return Fail(IsCapturing() ? cudaErrorStreamCaptureIsolation : cudaErrorInvalidValue);
    stream->capturing->push_back(std::move(work.run));
    return cudaSuccess;
  }
  machine.Stray();
  stream->queue->pending.push_back(std::move(work));
  ++stream->queue->enqueued;
  return cudaSuccess;
}

}  // namespace

int Enqueue(Stream stream, std::function<void()> work) { return Append(stream, {.run = std::move(work)}); }

}  // namespace rubato::cuda::emulation

using rubato::cuda::emulation::Append;
using rubato::cuda::emulation::capture_is_good;
using rubato::cuda::emulation::Captured;
using rubato::cuda::emulation::capturing;
using rubato::cuda::emulation::current_gpu;
using rubato::cuda::emulation::Fail;
using rubato::cuda::emulation::IsCapturing;
using rubato::cuda::emulation::kGpuBytes;
using rubato::cuda::emulation::kGpus;
using rubato::cuda::emulation::kPage;
using rubato::cuda::emulation::last_error;
using rubato::cuda::emulation::Machine;
using rubato::cuda::emulation::Queue;
using rubato::cuda::emulation::Reached;
using rubato::cuda::emulation::TheMachine;

// ---- errors and GPUs ----

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorName(cudaError_t) { return "error of an emulated GPU"; }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "memory that is no GPU's, or of the host and not locked";
    case cudaErrorInvalidResourceHandle:
      return "a stream or an event of another GPU";
    default:
      return "not allowed";
  }
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kGpus;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "emulated GPU");
  properties->totalGlobalMem = kGpuBytes;
  properties->major = 8;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int gpu) {
  if (gpu < 0 || gpu >= kGpus) return Fail(cudaErrorInvalidDevice);
  current_gpu = gpu;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  *total = kGpuBytes;
  *free = kGpuBytes - machine.used_bytes[current_gpu];
  return cudaSuccess;
}

// ---- memory ----

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  if (IsCapturing()) return Fail(cudaErrorStreamCaptureUnsupported);
  if (bytes > kGpuBytes - machine.used_bytes[current_gpu]) return Fail(cudaErrorMemoryAllocation);
  // At a multiple of 256, like a GPU's.
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*memory == nullptr) return Fail(cudaErrorMemoryAllocation);
  std::memset(*memory, 0xff, bytes);
  machine.of_gpus.Add(*memory, bytes);
  machine.gpu_of[*memory] = current_gpu;
  machine.used_bytes[current_gpu] += bytes;
  return cudaSuccess;
}

// Waits for all work, like a GPU's.
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  if (IsCapturing()) return Fail(cudaErrorStreamCaptureUnsupported);
  machine.ReachAll();
  const size_t bytes = machine.of_gpus.Remove(memory);
  if (bytes == 0) return Fail(cudaErrorInvalidValue);
  machine.used_bytes[machine.gpu_of.extract(memory).mapped()] -= bytes;
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags) {
  *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (*memory == nullptr) return Fail(cudaErrorMemoryAllocation);
  return cudaHostRegister(*memory, bytes, flags);
}

cudaError_t cudaFreeHost(void* memory) {
  const cudaError_t error = cudaHostUnregister(memory);
  if (error == cudaSuccess) std::free(memory);
  return error;
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  machine.locked.Add(memory, bytes);
  return cudaSuccess;
}

// Waits for all work: a copy from or to the memory may be in flight.
cudaError_t cudaHostUnregister(void* memory) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  machine.ReachAll();
  return machine.locked.Remove(memory) == 0 ? Fail(cudaErrorInvalidValue) : cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  const bool to_gpu = kind != cudaMemcpyDeviceToHost, from_gpu = kind != cudaMemcpyHostToDevice;
  if (!(to_gpu ? machine.of_gpus : machine.locked).Hold(to, bytes)) return Fail(cudaErrorInvalidValue);
  if (!(from_gpu ? machine.of_gpus : machine.locked).Hold(from, bytes)) return Fail(cudaErrorInvalidValue);
  return Append(stream, {.run = [=] { std::memcpy(to, from, bytes); }});
}

// At once, from or to any memory of the host, like a GPU's if all of its streams are non-blocking ones.
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  if (kind != cudaMemcpyDeviceToHost && !machine.of_gpus.Hold(to, bytes)) return Fail(cudaErrorInvalidValue);
  if (kind != cudaMemcpyHostToDevice && !machine.of_gpus.Hold(from, bytes)) return Fail(cudaErrorInvalidValue);
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  if (!machine.of_gpus.Hold(memory, bytes)) return Fail(cudaErrorInvalidValue);
  return Append(stream, {.run = [=] { std::memset(memory, value, bytes); }});
}

// ---- order ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  machine.queues.push_back(std::make_shared<Queue>());
  machine.queues.back()->gpu = current_gpu;
  *stream = new CUstream_st{.queue = machine.queues.back(), .capturing = nullptr};
  return cudaSuccess;
}

// The work that is left is done.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  machine.Reach({stream->queue, stream->queue->enqueued});
  std::erase(machine.queues, stream->queue);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  if (IsCapturing()) return Fail(cudaErrorStreamCaptureUnsupported);
  // What goes to the legacy stream, copies that are waited for, is done at once.
  if (stream != cudaStreamLegacy) machine.Reach({stream->queue, stream->queue->enqueued});
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  return Append(stream, {.run = nullptr, .awaited = event->point});
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st{.gpu = current_gpu};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  if (stream->capturing != nullptr) return Fail(IsCapturing() ? cudaErrorStreamCaptureUnsupported : cudaErrorUnknown);
  if (event->gpu != stream->queue->gpu) return Fail(cudaErrorInvalidResourceHandle);
  event->point = {stream->queue, stream->queue->enqueued};
  return cudaSuccess;
}

// Who asks often enough sees the work done.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  if (Reached(event->point)) return cudaSuccess;
  for (const auto& queue : machine.queues) {
    if (machine.Step(*queue)) break;
  }
  return Fail(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Machine& machine = TheMachine();
  const std::lock_guard lock(machine.mu);
  machine.Reach(event->point);
  return cudaSuccess;
}

// ---- graph capture: of one stream, replayed in its order ----

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const std::lock_guard lock(TheMachine().mu);
  if (IsCapturing() || stream->queue->gpu != current_gpu) return Fail(cudaErrorStreamCaptureUnsupported);
  stream->capturing = std::make_unique<Captured>();
  capturing = capture_is_good = true;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(TheMachine().mu);
  if (stream->capturing == nullptr) return Fail(cudaErrorIllegalState);
  const std::unique_ptr<Captured> work = std::move(stream->capturing);
  capturing = false;
  if (!capture_is_good) return Fail(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(*work)};
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* nodes) {
  *nodes = graph->work.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (capturing) return Fail(cudaErrorStreamCaptureUnsupported);
  for (const auto& work : executable->work) {
    if (const int error = rubato::cuda::emulation::Enqueue(stream, work); error != cudaSuccess) {
      return static_cast<cudaError_t>(error);
    }
  }
  return cudaSuccess;
}
