#ifndef RUBATO_COMMON_STRAGGLER_DRAWS_H_
#define RUBATO_COMMON_STRAGGLER_DRAWS_H_

#include <cstdint>

#include "common/random.h"

namespace rubato {

// Exponentially distributed, with mean 1.
double DrawExponential(Random* random);

// U^(-1/shape) with U uniform in (0, 1]; no more than kParetoLimit. shape > 0.
inline constexpr double kParetoLimit = 1000;
double DrawPareto(double shape, Random* random);

// Gamma-distributed with mean 1 and that standard deviation, > 0 (Marsaglia and Tsang 2000, "A simple method for
// generating gamma variables").
double DrawGamma(double variation, Random* random);

// A whole number from `low` to `high`, whose logarithm is uniform but for the rounding. 1 <= low <= high.
int64_t DrawLogUniform(int64_t low, int64_t high, Random* random);

// How many trials fail before the first one that succeeds. 0 < probability <= 1.
int64_t DrawFailures(double probability, Random* random);

}  // namespace rubato

#endif  // RUBATO_COMMON_STRAGGLER_DRAWS_H_
