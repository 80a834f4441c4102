#ifndef RUBATO_COORDINATOR_RULES_POLICIES_POLICY_CHANGE_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_POLICY_CHANGE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "coordinator/rules/learning_rate_rule.h"
#include "coordinator/rules/plan_maker.h"
#include "proto/job_config.pb.h"
#include "proto/parameter_server.pb.h"

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

// The job's rules as they are, but with so many batches between two exchanges.
inline PlanChange ExchangeEvery(const v1::Plan& plan, int64_t batches, std::string reason) {
  PlanChange change;
  change.mode = plan.mode();
  change.staleness_bound = plan.staleness_bound();
  change.quorum = plan.quorum();
  change.learning_rate_scale = plan.learning_rate_scale();
  change.sync_every = static_cast<uint32_t>(batches);
  change.reason = std::move(reason);
  return change;
}

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_POLICY_CHANGE_H_
