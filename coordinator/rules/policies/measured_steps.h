#ifndef RUBATO_COORDINATOR_RULES_POLICIES_MEASURED_STEPS_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_MEASURED_STEPS_H_

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "coordinator/rules/job_snapshot.h"
#include "coordinator/rules/policies/parts/step_order.h"

namespace rubato::coordinator {

// How long the steps of a plan's members take, as far as they are known.
struct MeasuredSteps {
  // Element k - 1: until k of the members have computed a step that all begin together, in seconds.
  std::vector<double> until;
  // By member: the mean of its computing.
  std::vector<double> means;
  // What a step takes beyond that: the way to the servers and back, and members that come to it late.
  double overhead = 0;
  // Contributions that complete a step now.
  size_t quorum = 0;

  size_t members() const { return until.size(); }
  // Of a step of SYNC that k contributions complete.
  double StepSeconds(size_t k) const { return until[k - 1] + overhead; }
};

// Absent unless every member works under the plan, which is SYNC, and has made enough steps.
inline std::optional<MeasuredSteps> MeasureSyncSteps(const JobSnapshot& job) {
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

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_MEASURED_STEPS_H_
