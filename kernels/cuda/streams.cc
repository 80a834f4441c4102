#include "kernels/cuda/streams.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/status.h"
#include "kernels/cuda/check.h"

namespace rubato::cuda {
namespace {

constexpr size_t kMarksKept = 64;

// Everything that was enqueued in the lanes when it was recorded.
class CudaEvent : public Event {
 public:
  explicit CudaEvent(std::vector<std::shared_ptr<const Mark>> marks) : marks_(std::move(marks)) {}

  bool Done() const override {
    return std::all_of(marks_.begin(), marks_.end(), [](const auto& mark) { return mark->Done(); });
  }
  absl::Status Wait() const override {
    for (const auto& mark : marks_) RUBATO_RETURN_IF_ERROR(mark->Wait());
    return absl::OkStatus();
  }

 private:
  const std::vector<std::shared_ptr<const Mark>> marks_;
};

void AddBlocks(absl::Span<const Streams::Block* const> blocks, std::vector<const Streams::Block*>* all) {
  for (const Streams::Block* block : blocks) {
    if (block != nullptr && std::find(all->begin(), all->end(), block) == all->end()) all->push_back(block);
  }
}

std::vector<Accesses*> AccessesOf(absl::Span<const Streams::Block* const> blocks) {
  std::vector<Accesses*> accesses;
  for (const Streams::Block* block : blocks) {
    if (block != nullptr) accesses.push_back(&block->accesses());
  }
  return accesses;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Mark>> Mark::Record(Stream stream, Ticket ticket) {
  cudaEvent_t event = nullptr;
  RUBATO_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  std::shared_ptr<const Mark> mark(new Mark(event, ticket));
  RUBATO_CUDA_RETURN_IF_ERROR(cudaEventRecord(event, stream));
  return mark;
}

Mark::~Mark() { (void)cudaEventDestroy(event_); }

bool Mark::Done() const {
  const bool done = cudaEventQuery(event_) != cudaErrorNotReady;
  // "Not ready" is remembered like an error, and must not be taken for that of a launch.
  if (!done) (void)cudaGetLastError();
  return done;
}

absl::Status Mark::Wait() const {
  RUBATO_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(event_));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Streams>> Streams::Create() {
  std::unique_ptr<Streams> streams(new Streams());
  // Not the legacy default stream, and not ordered with it.
  for (Stream& stream : streams->streams_) {
    RUBATO_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  return streams;
}

Streams::~Streams() {
  for (Stream stream : streams_) {
    if (stream == nullptr) continue;
    (void)cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
  }
}

absl::Status Streams::AwaitUses(Lane lane, absl::Span<Accesses* const> reads, absl::Span<Accesses* const> writes) {
  for (const AccessOrder::Wait& wait : order_.Before(lane, reads, writes)) {
    RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const Mark> mark, MarkAtLeast(wait.lane, wait.ticket));
    RUBATO_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(streams_[lane], mark->event(), 0));
    order_.Waited(lane, wait.lane, mark->ticket());
  }
  return absl::OkStatus();
}

absl::Status Streams::Enqueue(Lane lane, absl::Span<const Block* const> reads, absl::Span<const Block* const> writes) {
  if (capturing()) {
    if (lane != kCompute) return absl::FailedPreconditionError("copies from and to the device are not captured");
    AddBlocks(reads, &captured_->reads);
    AddBlocks(writes, &captured_->writes);
    return absl::OkStatus();
  }
  const std::vector<Accesses*> read = AccessesOf(reads), written = AccessesOf(writes);
  RUBATO_RETURN_IF_ERROR(AwaitUses(lane, read, written));
  order_.Enqueued(lane, read, written);
  return absl::OkStatus();
}

absl::Status Streams::Extend(Lane lane, const Block& block) {
  if (capturing()) return absl::FailedPreconditionError("new memory is not captured");
  Accesses* accesses = &block.accesses();
  RUBATO_RETURN_IF_ERROR(AwaitUses(lane, {}, {accesses}));
  order_.Extended(lane, accesses);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Mark>> Streams::MarkAtLeast(Lane lane, Ticket ticket) {
  for (const std::shared_ptr<const Mark>& mark : marks_[lane]) {
    if (mark->ticket() >= ticket) return mark;
  }
  RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const Mark> mark, Mark::Record(streams_[lane], order_.newest(lane)));
  marks_[lane].push_back(mark);
  if (marks_[lane].size() > kMarksKept) marks_[lane].pop_front();
  return mark;
}

absl::StatusOr<std::shared_ptr<const Mark>> Streams::MarkNewest(Lane lane) {
  if (order_.newest(lane) == 0) return std::shared_ptr<const Mark>();
  return MarkAtLeast(lane, order_.newest(lane));
}

absl::StatusOr<std::unique_ptr<Event>> Streams::Record() {
  std::vector<std::shared_ptr<const Mark>> marks;
  for (int lane = 0; lane < kLanes; ++lane) {
    RUBATO_ASSIGN_OR_RETURN(std::shared_ptr<const Mark> mark, MarkNewest(static_cast<Lane>(lane)));
    if (mark != nullptr) marks.push_back(std::move(mark));
  }
  return std::make_unique<CudaEvent>(std::move(marks));
}

absl::Status Streams::Synchronize() {
  for (Stream stream : streams_) RUBATO_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream));
  return absl::OkStatus();
}

}  // namespace rubato::cuda
