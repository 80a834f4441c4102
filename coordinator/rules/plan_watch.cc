#include "coordinator/rules/plan_watch.h"

#include <algorithm>
#include <utility>

namespace rubato::coordinator {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(5);

// The longest wait of a member to begin its first step under the plan, as far as they have begun.
double LongestWait(const v1::Plan& plan, const Membership& membership, bool* all_begun) {
  double longest = 0;
  *all_begun = true;
  for (const v1::TaskId& task : plan.members()) {
    const Member* member = membership.FindAlive(task);
    if (member == nullptr) continue;
    if (member->progress.generation() == plan.generation() && member->progress.entry_wait_seconds() > 0) {
      longest = std::max(longest, member->progress.entry_wait_seconds());
    } else {
      *all_begun = false;
    }
  }
  return longest;
}

}  // namespace

std::optional<PlanWatch::Report> PlanWatch::OnCommitted(const v1::Plan& plan, const std::string& reason,
                                                        absl::Duration round_trip, const Membership& membership,
                                                        absl::Time now) {
  std::optional<Report> former = Flush(membership);
  report_ = Report{plan, reason, PlanTimes()};
  report_->times.round_trip_seconds = absl::ToDoubleSeconds(round_trip);
  committed_at_ = now;
  for (const v1::TaskId& task : plan.members()) {
    const Member* member = membership.FindAlive(task);
    if (member == nullptr) continue;
    report_->times.slowest_step_seconds =
        std::max(report_->times.slowest_step_seconds, member->progress.mean_step_seconds());
  }
  return former;
}

std::optional<PlanWatch::Report> PlanWatch::Check(const v1::Plan& plan, const Membership& membership, absl::Time now) {
  if (!report_) return std::nullopt;
  bool all_begun = false;
  if (plan.generation() == report_->plan.generation()) LongestWait(plan, membership, &all_begun);
  if (!all_begun && now - committed_at_ < kTimeout) return std::nullopt;
  return Flush(membership);
}

std::optional<PlanWatch::Report> PlanWatch::Flush(const Membership& membership) {
  if (!report_) return std::nullopt;
  bool all_begun = false;
  report_->times.stall_seconds = LongestWait(report_->plan, membership, &all_begun);
  return std::exchange(report_, std::nullopt);
}

}  // namespace rubato::coordinator
