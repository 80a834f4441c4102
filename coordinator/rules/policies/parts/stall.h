#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_STALL_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_STALL_H_

#include <cmath>
#include <cstddef>
#include <deque>
#include <numeric>
#include <optional>

namespace rubato::coordinator {

// Whether the training loss has stopped falling: over the last windows it is no lower in the mean than over as many
// before them. Pure.
class Stall {
 public:
  static constexpr size_t kWindows = 10;

  // The loss of a window; absent or not finite: it counts for none.
  void Add(std::optional<double> loss) {
    if (!loss.has_value() || !std::isfinite(*loss)) return;
    losses_.push_back(*loss);
    if (losses_.size() > 2 * kWindows) losses_.pop_front();
  }
  void Forget() { losses_.clear(); }

  bool stalled() const {
    if (losses_.size() < 2 * kWindows) return false;
    const auto middle = losses_.begin() + kWindows;
    return std::accumulate(middle, losses_.end(), 0.0) >= std::accumulate(losses_.begin(), middle, 0.0);
  }

 private:
  std::deque<double> losses_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_STALL_H_
