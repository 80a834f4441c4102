#include "bench/key_draws.h"

#include <algorithm>
#include <cmath>

namespace rubato::bench {

int64_t Zipf::Next() {
  const double b = std::pow(2, s_ - 1);
  for (;;) {
    const double u = 1 - random_.Uniform(), v = random_.Uniform();
    const double x = std::floor(std::pow(u, -1 / (s_ - 1)));
    if (!(x <= static_cast<double>(n_))) continue;
    const double t = std::pow(1 + 1 / x, s_ - 1);
    if (v * x * (t - 1) / (b - 1) <= t / b) return static_cast<int64_t>(x) - 1;
  }
}

void SortByHash(const KeyHash& hash, std::vector<uint64_t>& keys) {
  std::sort(keys.begin(), keys.end(), [&](uint64_t a, uint64_t b) { return hash.Of(a) < hash.Of(b); });
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

}  // namespace rubato::bench
