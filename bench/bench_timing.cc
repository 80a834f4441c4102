#include "bench/bench_timing.h"

#include <utility>

#include "bench/bench_output.h"
#include "common/clock.h"
#include "common/random.h"

namespace rubato::bench {

std::vector<std::vector<double>> TimeInterleaved(const std::vector<std::function<void()>>& functions, int rounds) {
  std::vector<std::vector<double>> times(functions.size());
  for (int round = -1; round < rounds; ++round) {
    for (size_t i = 0; i < functions.size(); ++i) {
      const absl::Duration begin = ThreadCpuTime();
      functions[i]();
      if (round >= 0) times[i].push_back(absl::ToDoubleSeconds(ThreadCpuTime() - begin));
    }
  }
  return times;
}

double MedianRatio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return Median(std::move(ratios));
}

std::vector<float> NormalValues(int64_t n, uint64_t seed) {
  constexpr int64_t kTable = 1 << 16;
  Random random(seed);
  std::vector<float> table(kTable);
  for (float& value : table) value = static_cast<float>(random.Normal());
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = table[random.Next32() % kTable];
  return values;
}

}  // namespace rubato::bench
