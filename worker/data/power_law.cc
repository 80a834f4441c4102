#include "worker/data/power_law.h"

#include <algorithm>
#include <cmath>

namespace rubato::worker {

// The integral over the half to each side of k is at least the weight of k, as the weight is convex. A point of it is
// accepted if it lies in the upper part, of exactly that weight. Rank 1 has no more than that part.
PowerLaw::PowerLaw(int64_t n, double exponent)
    : n_(static_cast<double>(n)),
      exponent_(exponent),
      low_(Integral(1.5) - 1),
      high_(Integral(n_ + 0.5)),
      sure_(2 - InverseIntegral(Integral(2.5) - Weight(2))) {}

int64_t PowerLaw::Draw(Random* random) const {
  for (;;) {
    const double integral = high_ + random->Uniform() * (low_ - high_);
    const double x = InverseIntegral(integral);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, n_);
    if (k - x <= sure_ || integral >= Integral(k + 0.5) - Weight(k)) return static_cast<int64_t>(k);
  }
}

double PowerLaw::Weight(double k) const { return std::exp(-exponent_ * std::log(k)); }

double PowerLaw::Integral(double x) const {
  const double power = 1 - exponent_;
  return power == 0 ? std::log(x) : std::expm1(power * std::log(x)) / power;
}

double PowerLaw::InverseIntegral(double integral) const {
  const double power = 1 - exponent_;
  // Rounding may lead past the integral's limit, where x has no end.
  return std::exp(power == 0 ? integral : std::log1p(std::max(power * integral, -1.0)) / power);
}

}  // namespace rubato::worker
