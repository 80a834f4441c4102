#ifndef RUBATO_COORDINATOR_RULES_POLICIES_POLICY_CHANGE_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_POLICY_CHANGE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "coordinator/rules/learning_rate_rule.h"
#include "coordinator/rules/plan_maker.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// What a policy asks for: these rules, and the learning rate that goes with them.
inline PlanChange PolicyChange(const v1::JobConfig& config, v1::Mode mode, int64_t staleness_bound, uint32_t quorum,
                               std::string reason) {
  PlanChange change;
  change.mode = mode;
  change.staleness_bound = staleness_bound;
  change.quorum = quorum;
  change.learning_rate_scale = LearningRateRule(config, mode, quorum);
  change.reason = std::move(reason);
  return change;
}

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_POLICY_CHANGE_H_
