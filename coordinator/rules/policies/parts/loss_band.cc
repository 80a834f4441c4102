#include "coordinator/rules/policies/parts/loss_band.h"

#include <cmath>
#include <numeric>

namespace rubato::coordinator {

void LossBand::Add(std::optional<double> loss) {
  if (!loss.has_value()) return;
  if (!std::isfinite(*loss)) {
    if (frozen_) over_ = kWindowsOver;
    return;
  }
  if (!frozen_) {
    before_.push_back(*loss);
    if (before_.size() > kWindowsKept) before_.pop_front();
  } else if (limit_.has_value() && !left()) {
    over_ = *loss > *limit_ ? over_ + 1 : 0;
  }
}

void LossBand::Freeze() {
  frozen_ = true;
  over_ = 0;
  limit_.reset();
  if (before_.empty()) return;
  const auto count = static_cast<double>(before_.size());
  const double mean = std::accumulate(before_.begin(), before_.end(), 0.0) / count;
  limit_ = kRiseMax * mean;
  if (before_.size() < kWindowsMin) return;
  double squares = 0;
  for (double loss : before_) squares += (loss - mean) * (loss - mean);
  limit_ = mean + 3 * std::sqrt(squares / (count - 1));
}

}  // namespace rubato::coordinator
