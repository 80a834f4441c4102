#ifndef RUBATO_SERVER_RULES_CHECK_PLAN_H_
#define RUBATO_SERVER_RULES_CHECK_PLAN_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "proto/parameter_server.pb.h"

namespace rubato::server {

// Whether the rules can take the plan while `current` holds, which has generation 0 before the first one; a plan older
// than that they take no notice of. InvalidArgument names the field, its value and what is allowed. Pure.
absl::Status CheckPlan(const v1::Plan& plan, const v1::Plan& current);

// The newest plan that was taken. Not thread-safe.
class TakenPlan {
 public:
  // Takes the plan if CheckPlan holds, of which `refused` is told once for each generation otherwise: a coordinator
  // sends it again and again. Whether it was taken, or is an older one.
  bool Take(const v1::Plan& plan, absl::FunctionRef<void(const absl::Status& why)> refused);

  const v1::Plan& plan() const { return plan_; }

 private:
  v1::Plan plan_;
  uint64_t refused_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_CHECK_PLAN_H_
