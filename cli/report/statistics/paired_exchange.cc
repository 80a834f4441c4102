#include "cli/report/statistics/paired_exchange.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "common/random.h"

namespace rubato {
namespace {

// Of all ways, but for those that are others' mirror images: the last pair stays as it is.
std::vector<double> AllMagnitudes(int pairs, const ExchangedStatistic& statistic) {
  std::vector<double> magnitudes;
  std::vector<bool> exchanged(static_cast<size_t>(pairs));
  for (uint32_t way = 0; way < (1u << (pairs - 1)); ++way) {
    for (size_t i = 0; i + 1 < exchanged.size(); ++i) exchanged[i] = (way >> i & 1) != 0;
    magnitudes.push_back(std::abs(statistic(exchanged)));
  }
  return magnitudes;
}

std::vector<double> DrawnMagnitudes(int pairs, const ExchangedStatistic& statistic) {
  Random random(1, StreamId("exchange"));
  std::vector<double> magnitudes;
  std::vector<bool> exchanged(static_cast<size_t>(pairs));
  for (int draw = 0; draw < kExchangeDraws; ++draw) {
    for (size_t i = 0; i < exchanged.size(); ++i) exchanged[i] = random.Below(2) == 1;
    magnitudes.push_back(std::abs(statistic(exchanged)));
  }
  return magnitudes;
}

}  // namespace

double ExchangeP(int pairs, const ExchangedStatistic& statistic) {
  const double seen = std::abs(statistic(std::vector<bool>(static_cast<size_t>(pairs))));
  const bool all = pairs <= kPairsExchangedExactly;
  const std::vector<double> magnitudes = all ? AllMagnitudes(pairs, statistic) : DrawnMagnitudes(pairs, statistic);
  // Sums of the same numbers in another order are equal but for rounding.
  const double rounding = 1e-12 * std::max(seen, *std::max_element(magnitudes.begin(), magnitudes.end()));
  const auto hits = std::count_if(magnitudes.begin(), magnitudes.end(),
                                  [&](double magnitude) { return magnitude >= seen - rounding; });
  const double extra = all ? 0 : 1;
  return (extra + static_cast<double>(hits)) / (extra + static_cast<double>(magnitudes.size()));
}

double SignFlipP(const std::vector<double>& differences) {
  return ExchangeP(static_cast<int>(differences.size()), [&](const std::vector<bool>& exchanged) {
    double sum = 0;
    for (size_t i = 0; i < differences.size(); ++i) sum += exchanged[i] ? -differences[i] : differences[i];
    return sum;
  });
}

double SmallestP(int pairs) { return std::ldexp(2, -pairs); }

}  // namespace rubato
