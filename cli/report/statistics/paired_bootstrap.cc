#include "cli/report/statistics/paired_bootstrap.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "cli/report/statistics/student_t.h"
#include "common/random.h"

namespace rubato {
namespace {

struct Resample {
  double value = 0;
  double probability = 0;
};

// Every way to draw the pairs, up to their order.
class AllResamples {
 public:
  AllResamples(int pairs, const ResampledStatistic& statistic)
      : pairs_(pairs), statistic_(statistic), times_(static_cast<size_t>(pairs)) {
    Draw(0, pairs, std::tgamma(pairs + 1) / std::pow(pairs, pairs));
  }

  std::vector<Resample> resamples;

 private:
  // From pair `next` on, of which `left` are yet to be drawn. The probability is the multinomial distribution's: pairs!
  // / product of times! / pairs^pairs.
  void Draw(int next, int left, double probability) {
    int& times = times_[static_cast<size_t>(next)];
    if (next + 1 == pairs_) {
      times = left;
      resamples.push_back({statistic_(times_), probability / std::tgamma(left + 1)});
      return;
    }
    for (times = 0; times <= left; ++times) Draw(next + 1, left - times, probability / std::tgamma(times + 1));
  }

  const int pairs_;
  const ResampledStatistic& statistic_;
  std::vector<int> times_;
};

std::vector<Resample> DrawnResamples(int pairs, const ResampledStatistic& statistic) {
  Random random(1, StreamId("bootstrap"));
  std::vector<Resample> resamples;
  std::vector<int> times(static_cast<size_t>(pairs));
  for (int i = 0; i < kResamples; ++i) {
    std::fill(times.begin(), times.end(), 0);
    for (int j = 0; j < pairs; ++j) ++times[random.Below(times.size())];
    resamples.push_back({statistic(times), 1.0 / kResamples});
  }
  return resamples;
}

// The first value, in the order of the iterators, up to which there is so much probability.
template <typename Iterator>
double ValueAt(double probability, Iterator begin, Iterator end) {
  double sum = 0;
  double value = begin->value;
  for (Iterator resample = begin; resample != end && sum < probability; ++resample) {
    value = resample->value;
    sum += resample->probability;
  }
  return value;
}

}  // namespace

Interval BootstrapInterval(int pairs, const ResampledStatistic& statistic) {
  std::vector<Resample> resamples =
      pairs <= kPairsResampledExactly ? AllResamples(pairs, statistic).resamples : DrawnResamples(pairs, statistic);
  std::sort(resamples.begin(), resamples.end(), [](const Resample& a, const Resample& b) { return a.value < b.value; });
  const double widening = std::sqrt(pairs / (pairs - 1.0));
  const double tail = NormalCdf(-widening * StudentQuantile(0.975, pairs - 1));
  return {ValueAt(tail, resamples.begin(), resamples.end()), ValueAt(tail, resamples.rbegin(), resamples.rend())};
}

Interval BootstrapIntervalOfMean(const std::vector<double>& differences) {
  return BootstrapInterval(static_cast<int>(differences.size()), [&](const std::vector<int>& times) {
    double sum = 0;
    for (size_t i = 0; i < times.size(); ++i) sum += times[i] * differences[i];
    return sum / static_cast<double>(times.size());
  });
}

}  // namespace rubato
