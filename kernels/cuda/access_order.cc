#include "kernels/cuda/access_order.h"

#include <algorithm>

namespace rubato::cuda {

std::vector<AccessOrder::Wait> AccessOrder::Before(Lane lane, absl::Span<Accesses* const> reads,
                                                   absl::Span<Accesses* const> writes) const {
  std::vector<Wait> waits;
  for (int other = 0; other < kLanes; ++other) {
    if (other == lane) continue;
    Ticket needed = 0;
    for (const Accesses* read : reads) needed = std::max(needed, read->written[other]);
    for (const Accesses* write : writes) needed = std::max(needed, write->used[other]);
    if (needed > waited_[lane][other]) waits.push_back({static_cast<Lane>(other), needed});
  }
  return waits;
}

void AccessOrder::Waited(Lane lane, Lane other, Ticket ticket) {
  waited_[lane][other] = std::max(waited_[lane][other], ticket);
}

Ticket AccessOrder::Enqueued(Lane lane, absl::Span<Accesses* const> reads, absl::Span<Accesses* const> writes) {
  const Ticket ticket = ++newest_[lane];
  for (Accesses* read : reads) read->used[lane] = ticket;
  for (Accesses* write : writes) write->used[lane] = write->written[lane] = ticket;
  return ticket;
}

void AccessOrder::Extended(Lane lane, Accesses* write) { write->used[lane] = write->written[lane] = newest_[lane]; }

}  // namespace rubato::cuda
