#ifndef RUBATO_COORDINATOR_RULES_LEARNING_RATE_RULE_H_
#define RUBATO_COORDINATOR_RULES_LEARNING_RATE_RULE_H_

#include <cstdint>

#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// The factor on the config's learning rate under other rules than those that the job begins with, by the contributions
// in one update (LearningRateFactor). `quorum` 0: all of cluster.workers. Compensations for staleness that divide the
// rate of a push by a number of pushes make it count as so many contributions. Pure.
double LearningRateRule(const v1::JobConfig& config, v1::Mode mode, uint32_t quorum);

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_LEARNING_RATE_RULE_H_
