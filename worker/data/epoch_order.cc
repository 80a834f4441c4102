#include "worker/data/epoch_order.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "common/random.h"

namespace rubato::worker {

EpochOrder::EpochOrder(uint64_t seed, int64_t epoch, int64_t n, bool shuffle) : epoch_(epoch), size_(n) {
  if (!shuffle) return;
  Random random(seed, StreamId("epoch order", static_cast<uint64_t>(epoch)));
  if (n > kDrawn) {
    bits_ = static_cast<int>(std::bit_width(static_cast<uint64_t>(n - 1)));
    for (uint64_t& key : keys_) key = random.Next64();
    return;
  }
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0u);
  for (int64_t i = n - 1; i > 0; --i) std::swap(order_[i], order_[random.Below(static_cast<uint64_t>(i) + 1)]);
}

int64_t EpochOrder::Compute(int64_t position) const {
  auto place = static_cast<uint64_t>(position);
  do {
    int low_bits = bits_ / 2;
    for (const uint64_t key : keys_) {
      const int high_bits = bits_ - low_bits;
      const uint64_t low = place & ((uint64_t{1} << low_bits) - 1);
      const uint64_t high = (place >> low_bits) ^ (MixBits(low ^ key) >> (64 - high_bits));
      place = low << high_bits | high;
      low_bits = high_bits;
    }
  } while (place >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(place);
}

std::shared_ptr<const EpochOrder> EpochOrders::Get(int64_t epoch) {
  constexpr size_t kKept = 3;
  // Held while an order is drawn: whoever asks for the same epoch meanwhile would otherwise draw it again.
  MutexLock lock(mu_);
  auto it = std::find_if(kept_.begin(), kept_.end(), [&](const auto& order) { return order->epoch() == epoch; });
  std::shared_ptr<const EpochOrder> order;
  if (it != kept_.end()) {
    order = *it;
    kept_.erase(it);
  } else {
    order = std::make_shared<const EpochOrder>(seed_, epoch, size_, shuffle_);
    if (kept_.size() == kKept) kept_.pop_front();
  }
  kept_.push_back(order);
  return order;
}

}  // namespace rubato::worker
