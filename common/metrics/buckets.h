#ifndef RUBATO_COMMON_METRICS_BUCKETS_H_
#define RUBATO_COMMON_METRICS_BUCKETS_H_

#include <algorithm>
#include <array>
#include <cstddef>

namespace rubato {

// Upper bounds of the buckets that durations of steps are counted in, in seconds, ascending; one more bucket takes what
// is above.
inline constexpr std::array<double, 16> kStepSecondsBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                              0.25,   0.5,   1,      2.5,   5,    10,    30,   60};

// Which of `bounds.size() + 1` buckets a value belongs to; a value on a bound is under it.
template <typename Bounds>
size_t BucketOf(const Bounds& bounds, double value) {
  return static_cast<size_t>(std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin());
}

}  // namespace rubato

#endif  // RUBATO_COMMON_METRICS_BUCKETS_H_
