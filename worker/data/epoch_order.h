#ifndef RUBATO_WORKER_DATA_EPOCH_ORDER_H_
#define RUBATO_WORKER_DATA_EPOCH_ORDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"

namespace rubato::worker {

// The order in which an epoch visits the examples: a permutation of [0, n) that depends on (seed, epoch, n) alone, or
// the identity if examples are not shuffled. The same on every worker. Up to kDrawn examples it is drawn (Fisher and
// Yates, in Durstenfeld's 1964 form) and kept; of more, whose order would take gigabytes, each position is computed
// when it is asked for: a Feistel network over the next power of two (Luby and Rackoff 1988), gone through again while
// that leads out of [0, n) (Black and Rogaway 2002, "cycle walking"). Immutable and thread-safe.
class EpochOrder {
 public:
  static constexpr int64_t kDrawn = int64_t{1} << 24;

  // 0 <= n < 2^32.
  EpochOrder(uint64_t seed, int64_t epoch, int64_t n, bool shuffle);

  int64_t epoch() const { return epoch_; }
  int64_t size() const { return size_; }
  // The example at a position of the epoch, 0 <= position < size().
  int64_t At(int64_t position) const {
    if (!order_.empty()) return order_[position];
    return bits_ == 0 ? position : Compute(position);
  }

 private:
  // An even number: halves of different sizes have their own places again.
  static constexpr size_t kRounds = 6;

  int64_t Compute(int64_t position) const;

  const int64_t epoch_;
  const int64_t size_;
  // Empty if it is not drawn.
  std::vector<uint32_t> order_;
  // Of a number below the next power of two; 0 if nothing is computed.
  int bits_ = 0;
  std::array<uint64_t, kRounds> keys_ = {};
};

// Keeps the orders of the epochs that were asked for last: shards of two epochs meet at an epoch's end. Thread-safe.
class EpochOrders {
 public:
  EpochOrders(uint64_t seed, int64_t n, bool shuffle) : seed_(seed), size_(n), shuffle_(shuffle) {}

  std::shared_ptr<const EpochOrder> Get(int64_t epoch);

 private:
  const uint64_t seed_;
  const int64_t size_;
  const bool shuffle_;
  Mutex mu_;
  // Least recently used first.
  std::deque<std::shared_ptr<const EpochOrder>> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_EPOCH_ORDER_H_
