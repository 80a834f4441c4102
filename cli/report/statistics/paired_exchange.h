#ifndef RUBATO_CLI_REPORT_STATISTICS_PAIRED_EXCHANGE_H_
#define RUBATO_CLI_REPORT_STATISTICS_PAIRED_EXCHANGE_H_

#include <functional>
#include <vector>

namespace rubato {

// A difference between the two sides of all pairs, with those of pair i exchanged if `exchanged[i]`. If the others
// are exchanged instead, it has the other sign.
using ExchangedStatistic = std::function<double(const std::vector<bool>& exchanged)>;

// Up to here every way to exchange pairs is looked at, instead of kExchangeDraws drawn ones.
inline constexpr int kPairsExchangedExactly = 16;
inline constexpr int kExchangeDraws = 9999;

// The two-sided paired permutation test (Fisher 1935, "The design of experiments", section 21): if it does not matter
// which side is which, each way to exchange the sides of `pairs` >= 1 pairs is as likely as what was seen. p is the
// share of them that differ at least as much. Of drawn ones it is (1 + hits) / (1 + draws), which is never too small
// (Phipson and Smyth 2010, "Permutation p-values should never be zero"). The same pairs give the same p.
double ExchangeP(int pairs, const ExchangedStatistic& statistic);

// The same of the mean of differences, which have their signs flipped.
double SignFlipP(const std::vector<double>& differences);

// The smallest p that so many pairs can have: both sides' extremes of 2^pairs ways.
double SmallestP(int pairs);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_STATISTICS_PAIRED_EXCHANGE_H_
