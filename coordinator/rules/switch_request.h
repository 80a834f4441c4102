#ifndef RUBATO_COORDINATOR_RULES_SWITCH_REQUEST_H_
#define RUBATO_COORDINATOR_RULES_SWITCH_REQUEST_H_

#include <string>

#include "absl/status/statusor.h"
#include "coordinator/rules/plan_maker.h"
#include "proto/coordinator.pb.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// Checks an operator's request against the job. InvalidArgument names field, value and what is allowed;
// FailedPrecondition: STATIC dispatch is defined under SYNC with all members alone, and local SGD not under SSP. Pure.
absl::StatusOr<PlanChange> CheckSwitch(const v1::JobConfig& config, const v1::SwitchModeRequest& request);

// What it asks for, as the run record says it: "switch to ssp:2", "switch to sync, quorum 3".
std::string SwitchText(const v1::SwitchModeRequest& request);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_SWITCH_REQUEST_H_
