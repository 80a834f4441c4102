#ifndef RUBATO_COORDINATOR_RULES_POLICIES_TESTING_MEASURED_JOB_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_TESTING_MEASURED_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "coordinator/rules/job_snapshot.h"
#include "coordinator/rules/mode_policy.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// A job of ten epochs and four workers with batches of 10, as a policy that measures sees it: each step of a worker
// takes what the test says. Windows have 50 steps and 5 seconds; three must agree, and one rests after a change.
//
//   MeasuredJob job(rules);
//   job.SetStep(3, 0.4);
//   std::optional<PlanChange> change = job.Windows(3);
//   job.Enter(*change);
class MeasuredJob {
 public:
  // `rules`: with a policy; defaults are filled in. The first window has begun.
  explicit MeasuredJob(const v1::ConsistencyConfig& rules, const v1::LearningRateSchedule& schedule = {});

  // All of the worker's latest steps took so long, with the batch that it has now.
  void SetStep(uint32_t worker, double seconds);
  // The mean staleness of what is pushed from now on.
  void SetStaleness(double staleness) { staleness_ = staleness; }
  // The part of the workers' differences that lasts, from now on.
  void SetLastingShare(double share) { lasting_share_ = share; }
  // What a step takes beyond the slowest member's computing.
  void SetOverhead(double seconds);
  // A window ends.
  std::optional<PlanChange> Window();
  // That many windows end. What the last one brings; a change that an earlier one brings is a failure.
  std::optional<PlanChange> Windows(int count);
  // The change is made, and a window begins.
  void Enter(const PlanChange& change);
  // Another policy of this job takes over with the memory of this one.
  void Restart();

  const v1::JobConfig& config() const { return config_; }
  JobSnapshot& snapshot() { return job_; }
  ModePolicy& policy() { return *policy_; }

 private:
  v1::JobConfig config_;
  std::unique_ptr<ModePolicy> policy_;
  JobSnapshot job_;
  double staleness_ = 0;
  double lasting_share_ = 0;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_TESTING_MEASURED_JOB_H_
