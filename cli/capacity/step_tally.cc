#include "cli/capacity/step_tally.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cli/report/statistics/student_t.h"

namespace rubato::capacity {
namespace {

constexpr int64_t kRoundsPerBatch = 5;
constexpr int64_t kRoundsMin = 30;
constexpr int64_t kRoundsMax = 1000;
constexpr size_t kStalenessMax = size_t{1} << 16;

}  // namespace

StepTally::StepTally(const Options& options) : options_(options) {}

int64_t StepTally::RoundsPerBatch() const {
  return options_.rounds == 0 ? kRoundsPerBatch : std::max<int64_t>(1, options_.rounds / 10);
}

void StepTally::OnStep(uint32_t, const StepParts& parts, int64_t staleness) {
  const SimTime now = options_.queue->now();
  ++counted_;
  const int64_t warm_up = options_.warm_up_rounds * options_.workers;
  if (counted_ == warm_up) warm_at_ = batch_begun_ = now;
  if (counted_ <= warm_up) return;
  parts_ += parts;
  seconds_.push_back(static_cast<float>(ToSeconds(parts.total())));
  if (staleness >= 0) {
    const size_t at = std::min(static_cast<size_t>(staleness), kStalenessMax);
    if (staleness_.size() <= at) staleness_.resize(at + 1, 0);
    ++staleness_[at];
  }
  const int64_t batch = RoundsPerBatch() * options_.workers;
  if (steps() % batch != 0) return;
  rates_.push_back(static_cast<double>(batch) / ToSeconds(std::max<SimTime>(1, now - batch_begun_)));
  batch_begun_ = now;
}

bool StepTally::done() const {
  if (rates_.empty()) return false;
  const int64_t rounds = steps() / options_.workers;
  if (options_.rounds > 0) return rounds >= options_.rounds;
  if (rounds < kRoundsMin) return false;
  return rounds >= kRoundsMax || steps() >= options_.steps_max || rate_error() <= kGoodEnough * rate();
}

double StepTally::rate() const {
  // Batches have as many steps each: the mean rate is the harmonic mean of theirs.
  const double seconds =
      std::accumulate(rates_.begin(), rates_.end(), 0.0, [](double sum, double r) { return sum + 1 / r; });
  return static_cast<double>(rates_.size()) / seconds;
}

double StepTally::rate_error() const {
  const auto n = static_cast<double>(rates_.size());
  if (rates_.size() < 2) return std::numeric_limits<double>::infinity();
  const double mean = std::accumulate(rates_.begin(), rates_.end(), 0.0) / n;
  const double squares = std::accumulate(rates_.begin(), rates_.end(), 0.0,
                                         [mean](double sum, double r) { return sum + (r - mean) * (r - mean); });
  return StudentQuantile(0.975, static_cast<int>(rates_.size()) - 1) * std::sqrt(squares / (n - 1) / n);
}

double StepTally::StepQuantile(double part) const {
  std::vector<float> sorted = seconds_;
  const auto at = std::min(sorted.size() - 1, static_cast<size_t>(part * static_cast<double>(sorted.size())));
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at), sorted.end());
  return double{sorted[at]};
}

double StepTally::staleness_mean() const {
  double sum = 0, count = 0;
  for (size_t staleness = 0; staleness < staleness_.size(); ++staleness) {
    sum += static_cast<double>(staleness) * static_cast<double>(staleness_[staleness]);
    count += static_cast<double>(staleness_[staleness]);
  }
  return count > 0 ? sum / count : 0;
}

int64_t StepTally::StalenessQuantile(double part) const {
  const int64_t count = std::accumulate(staleness_.begin(), staleness_.end(), int64_t{0});
  int64_t under = 0;
  for (size_t staleness = 0; staleness < staleness_.size(); ++staleness) {
    under += staleness_[staleness];
    if (static_cast<double>(under) >= part * static_cast<double>(count)) return static_cast<int64_t>(staleness);
  }
  return 0;
}

}  // namespace rubato::capacity
