#include "worker/evaluator/auc.h"

#include <bit>
#include <cmath>

namespace rubato::worker {

int Auc::BinOf(float score) {
  if (std::isnan(score)) return 0;
  // Negative numbers are ordered from the largest to the smallest of their bits.
  const auto bits = std::bit_cast<uint32_t>(score);
  const uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | uint32_t{1} << 31;
  return static_cast<int>(ordered >> (32 - kBinBits));
}

std::optional<double> Auc::Value() const {
  double pairs = 0, below = 0, all = 0;  // Examples of class 0 so far, and of class 1.
  for (int bin = 0; bin < kBins; ++bin) {
    const auto zeros = static_cast<double>(counts_[0][bin]), ones = static_cast<double>(counts_[1][bin]);
    pairs += ones * (below + zeros / 2);
    below += zeros;
    all += ones;
  }
  if (below == 0 || all == 0) return std::nullopt;
  return pairs / (below * all);
}

}  // namespace rubato::worker
