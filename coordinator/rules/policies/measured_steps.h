#ifndef RUBATO_COORDINATOR_RULES_POLICIES_MEASURED_STEPS_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_MEASURED_STEPS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "coordinator/rules/job_snapshot.h"

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
std::optional<MeasuredSteps> MeasureSyncSteps(const JobSnapshot& job);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_MEASURED_STEPS_H_
