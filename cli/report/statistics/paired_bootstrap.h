#ifndef RUBATO_CLI_REPORT_STATISTICS_PAIRED_BOOTSTRAP_H_
#define RUBATO_CLI_REPORT_STATISTICS_PAIRED_BOOTSTRAP_H_

#include <functional>
#include <vector>

namespace rubato {

struct Interval {
  double low = 0;
  double high = 0;
};

// A number of a sample in which pair i is there `times[i]` times.
using ResampledStatistic = std::function<double(const std::vector<int>& times)>;

inline constexpr int kResamples = 10000;
// Up to here every resample is looked at, each with its probability, instead of kResamples drawn ones.
inline constexpr int kPairsResampledExactly = 8;

// The bootstrap's interval of 95 % for a number of `pairs` >= 2 pairs, which are drawn with replacement and stay pairs
// (Efron 1979, "Bootstrap methods: another look at the jackknife").
//
// It is the percentile interval, whose percentiles are taken further out when there are few pairs: the plain one is too
// narrow by a factor of sqrt((n - 1) / n), and knows nothing of Student's t. These are the "expanded percentiles" of
// Hesterberg 2015, "What teachers should know about the bootstrap": NormalCdf(-sqrt(n / (n - 1)) t) for Student's t at
// 97.5 % with n - 1 degrees of freedom. The same pairs give the same interval.
Interval BootstrapInterval(int pairs, const ResampledStatistic& statistic);

// The same of the mean of differences.
Interval BootstrapIntervalOfMean(const std::vector<double>& differences);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_STATISTICS_PAIRED_BOOTSTRAP_H_
