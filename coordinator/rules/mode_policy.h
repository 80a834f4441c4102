#ifndef RUBATO_COORDINATOR_RULES_MODE_POLICY_H_
#define RUBATO_COORDINATOR_RULES_MODE_POLICY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/rules/plan_maker.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// Checks an operator's request against the job. InvalidArgument names field, value and what is allowed;
// FailedPrecondition: STATIC dispatch is defined under SYNC with all members alone, and local SGD not under SSP.
absl::StatusOr<PlanChange> CheckSwitch(const v1::JobConfig& config, const v1::SwitchModeRequest& request);

// The mode that a job starts in, and when its schedule asks for another one. Pure.
class ModePolicy {
 public:
  // Where the job is: the furthest worker's step, epochs done, seconds since training began.
  struct Point {
    int64_t step = 0;
    double epoch = 0;
    double seconds = 0;
  };

  explicit ModePolicy(const v1::ConsistencyConfig& config) : config_(config), done_(config.schedule_size(), false) {}

  PlanChange Initial() const;
  // The switch that has become due since the last call; of several, the last one in the schedule. Each is returned
  // once.
  std::optional<PlanChange> Due(const Point& point);
  // After a restart: PlanChange::scheduled of a switch that has been made.
  void MarkDone(uint32_t scheduled);

 private:
  const v1::ConsistencyConfig config_;
  std::vector<bool> done_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_MODE_POLICY_H_
