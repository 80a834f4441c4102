#ifndef RUBATO_BENCH_BENCH_TIMING_H_
#define RUBATO_BENCH_BENCH_TIMING_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace rubato::bench {

// Runs each function once in every round, one after another, so that a busy machine slows all of them alike, and
// returns the seconds of processor time of each round: times[function][round]. A first round is not counted.
std::vector<std::vector<double>> TimeInterleaved(const std::vector<std::function<void()>>& functions, int rounds);

// The median of a / b over rounds: times that are taken side by side share the machine's state.
double MedianRatio(const std::vector<double>& a, const std::vector<double>& b);

// n elements of a standard normal distribution, cheaply.
std::vector<float> NormalValues(int64_t n, uint64_t seed);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_BENCH_TIMING_H_
