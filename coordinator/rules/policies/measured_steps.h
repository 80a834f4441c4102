#ifndef RUBATO_COORDINATOR_RULES_POLICIES_MEASURED_STEPS_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_MEASURED_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "coordinator/rules/job_snapshot.h"
#include "proto/job_config.pb.h"

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

// The workers that are the plan's members, in its order. Absent unless all of them work under it.
std::optional<std::vector<const JobSnapshot::Worker*>> MembersAtWork(const JobSnapshot& job);

// The members' latest steps, as many of each, for ReplaySsp.
struct WorkToReplay {
  std::vector<std::vector<double>> seconds;
  // What a step takes beyond that, so that the replay under the present rules takes as long as it does.
  double overhead = 0;
  // The plan's mode as a bound.
  int64_t bound = 0;
};

// In any mode. Absent unless every member works under the plan and has made enough steps.
std::optional<WorkToReplay> MeasureWork(const JobSnapshot& job);
// The work of several windows under one plan, of which one alone has a few dozen steps of each worker.
class WorkHistory {
 public:
  // Keeps so many windows, 1 or more.
  explicit WorkHistory(size_t windows) : windows_(windows) {}

  // With the steps of the windows before, if they are of the same plan.
  WorkToReplay Add(uint64_t generation, WorkToReplay work);

 private:
  const size_t windows_;
  uint64_t generation_ = 0;
  std::deque<WorkToReplay> kept_;
};

// The bound of SSP that a mode is: 0 for SYNC, kNoBound for ASYNC.
int64_t BoundOf(v1::Mode mode, int64_t staleness_bound);

// Which part of the training is done, 0 to 1: of its epochs or of its steps, whichever is more.
double TrainedShare(const v1::TrainingConfig& training, const JobSnapshot& job);

// Absent unless every member works under the plan, which is SYNC, and has made enough steps.
std::optional<MeasuredSteps> MeasureSyncSteps(const JobSnapshot& job);

// Seconds per batch of every member, were there `batches` between two exchanges instead of the `now` of the measured
// steps. A step then has as many times the work of the slowest member, one way to the servers and back, and of what
// the members wait for each other by chance, which is independent from batch to batch, the root of that, as a sum of
// such differences.
double BatchSeconds(const MeasuredSteps& steps, int64_t now, int64_t batches);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_MEASURED_STEPS_H_
