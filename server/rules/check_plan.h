#ifndef RUBATO_SERVER_RULES_CHECK_PLAN_H_
#define RUBATO_SERVER_RULES_CHECK_PLAN_H_

#include "absl/status/status.h"
#include "proto/parameter_server.pb.h"

namespace rubato::server {

// Whether the rules can take the plan while `current` holds, which has generation 0 before the first one; a plan older
// than that they take no notice of. InvalidArgument names the field, its value and what is allowed. Pure.
absl::Status CheckPlan(const v1::Plan& plan, const v1::Plan& current);

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_CHECK_PLAN_H_
