#ifndef RUBATO_BENCH_BENCH_TIMING_H_
#define RUBATO_BENCH_BENCH_TIMING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/optimizer/isa.h"

namespace rubato::bench {

// Binds the calling thread to one of the cores that it may use, the last. Internal where the system refuses.
absl::Status PinToOneCore();

// The instruction sets that a --isa flag means: "best" (which is given), "all" (that this processor supports), or one
// by its name. InvalidArgument where the name is unknown, FailedPrecondition where this processor does not support it.
absl::StatusOr<std::vector<Isa>> ParseIsas(const std::string& flag, Isa best);

// Runs each function once in every round, one after another, so that a busy machine slows all of them alike, and
// returns the seconds of processor time of each round: times[function][round]. A first round is not counted.
std::vector<std::vector<double>> TimeInterleaved(const std::vector<std::function<void()>>& functions, int rounds);

// The median of a / b over rounds: times that are taken side by side share the machine's state.
double MedianRatio(const std::vector<double>& a, const std::vector<double>& b);

// n elements of a standard normal distribution, cheaply.
std::vector<float> NormalValues(int64_t n, uint64_t seed);

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_BENCH_TIMING_H_
