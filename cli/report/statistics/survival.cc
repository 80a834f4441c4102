#include "cli/report/statistics/survival.h"

#include <algorithm>
#include <cstddef>

namespace rubato {
namespace {

struct Weighted {
  Duration duration;
  int times = 1;
};

}  // namespace

std::vector<SurvivalStep> KaplanMeier(const std::vector<Duration>& durations, const std::vector<int>& times) {
  std::vector<Weighted> sorted;
  for (size_t i = 0; i < durations.size(); ++i) sorted.push_back({durations[i], times.empty() ? 1 : times[i]});
  std::sort(sorted.begin(), sorted.end(), [](const Weighted& a, const Weighted& b) {
    if (a.duration.at != b.duration.at) return a.duration.at < b.duration.at;
    return a.duration.reached && !b.duration.reached;
  });
  int left = 0;
  for (const Weighted& entry : sorted) left += entry.times;
  std::vector<SurvivalStep> steps;
  double share = 1;
  for (const auto& [duration, count] : sorted) {
    if (duration.reached && count > 0) {
      share *= 1 - static_cast<double>(count) / left;
      steps.push_back({duration.at, share});
    }
    left -= count;
  }
  return steps;
}

double RestrictedMean(const std::vector<SurvivalStep>& steps, double horizon) {
  double area = 0, share = 1, from = 0;
  for (const SurvivalStep& step : steps) {
    if (step.at >= horizon) break;
    area += share * (step.at - from);
    from = step.at;
    share = step.share;
  }
  return area + share * (horizon - from);
}

double LatestHorizon(const std::vector<std::vector<Duration>>& groups) {
  double longest = 0, horizon = 0;
  bool is_limited = false;
  for (const std::vector<Duration>& group : groups) {
    if (group.empty()) continue;
    const Duration last = *std::max_element(group.begin(), group.end(), [](const Duration& a, const Duration& b) {
      return a.at < b.at || (a.at == b.at && a.reached && !b.reached);
    });
    longest = std::max(longest, last.at);
    if (last.reached) continue;
    horizon = is_limited ? std::min(horizon, last.at) : last.at;
    is_limited = true;
  }
  return is_limited ? horizon : longest;
}

}  // namespace rubato
