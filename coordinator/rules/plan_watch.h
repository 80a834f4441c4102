#ifndef RUBATO_COORDINATOR_RULES_PLAN_WATCH_H_
#define RUBATO_COORDINATOR_RULES_PLAN_WATCH_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "coordinator/record/run_record.h"
#include "coordinator/rules/membership.h"
#include "proto/parameter_server.pb.h"

namespace rubato::coordinator {

// Watches a committed plan until every member has begun a step under it, to say what the change cost. Pure.
class PlanWatch {
 public:
  struct Report {
    v1::Plan plan;
    std::string reason;
    PlanTimes times;
  };

  // Takes the slowest member's mean step time from the heartbeats that were there before the change. A plan that is
  // still being watched is reported as far as it has come.
  std::optional<Report> OnCommitted(const v1::Plan& plan, const std::string& reason, absl::Duration round_trip,
                                    const Membership& membership, absl::Time now);
  // The report, once: when all members of `plan` (as amended) have begun a step, or after five seconds.
  std::optional<Report> Check(const v1::Plan& plan, const Membership& membership, absl::Time now);
  // What is being watched, as far as it has come.
  std::optional<Report> Flush(const Membership& membership);

 private:
  std::optional<Report> report_;
  absl::Time committed_at_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_PLAN_WATCH_H_
