#ifndef RUBATO_WORKER_DATA_POWER_LAW_H_
#define RUBATO_WORKER_DATA_POWER_LAW_H_

#include <cstdint>

#include "common/random.h"

namespace rubato::worker {

// Draws ranks of 1 to n; rank k has a probability proportional to k^-exponent. There is no table, so that n may be any:
// rejection-inversion (Hoermann and Derflinger 1996, "Rejection-inversion to generate variates from monotone discrete
// distributions"). Immutable and thread-safe.
//
//   const PowerLaw law(100'000, 1.05);
//   int64_t rank = law.Draw(&random);
class PowerLaw {
 public:
  // n: 1 to 2^52. exponent: over 0.
  PowerLaw(int64_t n, double exponent);

  int64_t Draw(Random* random) const;

 private:
  // k^-exponent, its integral from 1 to x, and that one's inverse.
  double Weight(double k) const;
  double Integral(double x) const;
  double InverseIntegral(double integral) const;

  const double n_;
  const double exponent_;
  // What integrals are drawn from.
  const double low_, high_;
  // A rank that is at most this much over the drawn point stands without a look at its weight.
  const double sure_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DATA_POWER_LAW_H_
