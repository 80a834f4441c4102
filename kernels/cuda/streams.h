#ifndef RUBATO_KERNELS_CUDA_STREAMS_H_
#define RUBATO_KERNELS_CUDA_STREAMS_H_

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/backend.h"
#include "kernels/cuda/access_order.h"
#include "kernels/cuda/memory_pool.h"
#include "kernels/cuda/stream.h"

namespace rubato::cuda {

// A CUDA event that stands in a lane after the work with a ticket. Thread-safe once recorded.
class Mark {
 public:
  // On the current device, in `stream`.
  static absl::StatusOr<std::shared_ptr<const Mark>> Record(Stream stream, Ticket ticket);
  ~Mark();
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  Ticket ticket() const { return ticket_; }
  CUevent_st* event() const { return event_; }
  // Whether the work is finished, or has failed.
  bool Done() const;
  absl::Status Wait() const;

 private:
  Mark(CUevent_st* event, Ticket ticket) : event_(event), ticket_(ticket) {}

  CUevent_st* const event_;
  const Ticket ticket_;
};

// The three streams of a backend: computations, copies to the device and copies from it, which run beside each other as
// far as what they use allows. One thread at a time.
//
//   RUBATO_RETURN_IF_ERROR(streams->Enqueue(kCompute, {x_block}, {y_block}));
//   Kernel<<<blocks, threads, 0, streams->stream(kCompute)>>>(...);
class Streams {
 public:
  using Block = MemoryPool::Block;

  // On the current device. Internal: CUDA refused.
  static absl::StatusOr<std::unique_ptr<Streams>> Create();
  // Waits for all work.
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  Stream stream(Lane lane) const { return streams_[lane]; }

  // Orders the work that the caller enqueues next in the lane after what it depends on; all of that work must be
  // enqueued before the next call of anything here. On an error it must not
  // be enqueued. Null blocks are left out.
  absl::Status Enqueue(Lane lane, absl::Span<const Block* const> reads, absl::Span<const Block* const> writes);
  // Lets the newest work of the lane, which is still being enqueued, write one more block.
  absl::Status Extend(Lane lane, const Block& block);
  // After everything enqueued in the lane so far; null if that is nothing.
  absl::StatusOr<std::shared_ptr<const Mark>> MarkNewest(Lane lane);
  // After everything enqueued so far.
  absl::StatusOr<std::unique_ptr<Event>> Record();
  absl::Status Synchronize();

  // What a captured graph uses, each block once.
  struct Uses {
    std::vector<const Block*> reads, writes;
  };
  // From now on work in kCompute is recorded by CUDA and not done: Enqueue adds to `uses` and orders nothing. No other
  // lane may be used. FailedPrecondition from these, in the meantime: it cannot be recorded.
  void BeginCapture(Uses* uses) { captured_ = uses; }
  void EndCapture() { captured_ = nullptr; }
  bool capturing() const { return captured_ != nullptr; }

 private:
  Streams() = default;
  absl::Status AwaitUses(Lane lane, absl::Span<Accesses* const> reads, absl::Span<Accesses* const> writes);
  // One that stands at this ticket or after it.
  absl::StatusOr<std::shared_ptr<const Mark>> MarkAtLeast(Lane lane, Ticket ticket);

  AccessOrder order_;
  Uses* captured_ = nullptr;
  std::array<Stream, kLanes> streams_ = {};
  // In order of tickets. The newest few: an old one that is gone is replaced by a later one, which is only stricter.
  std::array<std::deque<std::shared_ptr<const Mark>>, kLanes> marks_;
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_STREAMS_H_
