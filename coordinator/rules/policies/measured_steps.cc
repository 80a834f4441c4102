#include "coordinator/rules/policies/measured_steps.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "coordinator/rules/policies/parts/step_order.h"

namespace rubato::coordinator {

std::optional<MeasuredSteps> MeasureSyncSteps(const JobSnapshot& job) {
  std::vector<std::vector<double>> seconds;
  double fastest = std::numeric_limits<double>::infinity();
  for (const v1::TaskId& member : job.plan.members()) {
    const auto worker = std::find_if(job.workers.begin(), job.workers.end(),
                                     [&](const JobSnapshot::Worker& w) { return w.index == member.index(); });
    if (worker == job.workers.end() || worker->generation != job.plan.generation()) return std::nullopt;
    seconds.push_back(worker->work_seconds);
    fastest = std::min(fastest, worker->mean_step_seconds);
  }
  MeasuredSteps steps = {.until = MeanStepOrder(seconds), .means = MeanSteps(seconds)};
  if (steps.until.empty()) return std::nullopt;
  steps.quorum = job.plan.quorum() == 0 ? steps.members() : std::min<size_t>(job.plan.quorum(), steps.members());
  steps.overhead = std::max(0.0, fastest - steps.until[steps.quorum - 1]);
  return steps;
}

}  // namespace rubato::coordinator
