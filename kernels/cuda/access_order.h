#ifndef RUBATO_KERNELS_CUDA_ACCESS_ORDER_H_
#define RUBATO_KERNELS_CUDA_ACCESS_ORDER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace rubato::cuda {

// Queues of work on one device. Work in one lane runs in order; lanes run beside each other.
enum Lane : int { kCompute, kCopyIn, kCopyOut };
inline constexpr int kLanes = 3;

// Numbers the work of a lane from 1 on; 0 stands for none.
using Ticket = int64_t;

// Which work used a piece of memory last, lane by lane.
struct Accesses {
  std::array<Ticket, kLanes> written = {};
  std::array<Ticket, kLanes> used = {};  // Read or written.
};

// Says what a lane must wait for, so that work in several lanes behaves as if run in the order of the calls: a read
// comes after the writes before it, a write after all uses before it. Pure; one thread at a time.
//
//   for (Wait wait : order.Before(kCopyOut, {&gradient}, {})) { ...; order.Waited(kCopyOut, wait.lane, ticket); }
//   order.Enqueued(kCopyOut, {&gradient}, {});
class AccessOrder {
 public:
  struct Wait {
    Lane lane;
    // Up to and including this.
    Ticket ticket;
  };

  // At most one entry for each other lane; none for what the lane has waited for already.
  std::vector<Wait> Before(Lane lane, absl::Span<Accesses* const> reads, absl::Span<Accesses* const> writes) const;
  // The lane runs nothing more until `other` has finished work `ticket`.
  void Waited(Lane lane, Lane other, Ticket ticket);
  // Takes the next ticket of the lane for work with these uses.
  Ticket Enqueued(Lane lane, absl::Span<Accesses* const> reads, absl::Span<Accesses* const> writes);
  // Adds a use to the newest work of the lane, which writes this too.
  void Extended(Lane lane, Accesses* write);
  // The ticket of the newest work of a lane.
  Ticket newest(Lane lane) const { return newest_[lane]; }

 private:
  std::array<Ticket, kLanes> newest_ = {};
  // [lane][other]: what the lane has waited for.
  std::array<std::array<Ticket, kLanes>, kLanes> waited_ = {};
};

}  // namespace rubato::cuda

#endif  // RUBATO_KERNELS_CUDA_ACCESS_ORDER_H_
