#ifndef RUBATO_COMMON_CONFIG_PLANNED_MOMENTUM_H_
#define RUBATO_COMMON_CONFIG_PLANNED_MOMENTUM_H_

#include <string>

#include "proto/job_config.pb.h"

namespace rubato {

// Why a switch of this job cannot change the optimizer's momentum, for errors: "optimizer.algorithm is ADAM". Empty: it
// can. Pure.
std::string WhyNoPlannedMomentum(const v1::JobConfig& config);

}  // namespace rubato

#endif  // RUBATO_COMMON_CONFIG_PLANNED_MOMENTUM_H_
