#include "coordinator/rules/policies/parts/step_order.h"

#include <algorithm>
#include <numeric>

namespace rubato::coordinator {
namespace {

// How many steps each worker has; 0 if that is too few.
size_t StepsOfEach(const std::vector<std::vector<double>>& seconds) {
  if (seconds.empty()) return 0;
  size_t steps = seconds.front().size();
  for (const std::vector<double>& worker : seconds) steps = std::min(steps, worker.size());
  return steps < kStepsToJudge ? 0 : steps;
}

}  // namespace

std::vector<double> MeanStepOrder(const std::vector<std::vector<double>>& seconds) {
  const size_t steps = StepsOfEach(seconds);
  if (steps == 0) return {};
  std::vector<double> sums(seconds.size(), 0);
  for (size_t j = 1; j <= steps; ++j) {
    std::vector<double> step;
    for (const std::vector<double>& worker : seconds) step.push_back(worker[worker.size() - j]);
    std::sort(step.begin(), step.end());
    for (size_t k = 0; k < step.size(); ++k) sums[k] += step[k];
  }
  for (double& sum : sums) sum /= static_cast<double>(steps);
  return sums;
}

std::vector<double> MeanSteps(const std::vector<std::vector<double>>& seconds) {
  if (StepsOfEach(seconds) == 0) return {};
  std::vector<double> means;
  for (const std::vector<double>& worker : seconds) {
    means.push_back(std::accumulate(worker.begin(), worker.end(), 0.0) / static_cast<double>(worker.size()));
  }
  return means;
}

}  // namespace rubato::coordinator
