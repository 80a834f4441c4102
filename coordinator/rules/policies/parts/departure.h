#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_DEPARTURE_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_DEPARTURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "coordinator/rules/policies/parts/loss_band.h"
#include "coordinator/rules/policies/parts/pace.h"
#include "proto/job_config.pb.h"

namespace rubato::coordinator {

// A job's one departure from the rules of its config, as policies make it that change them for the rest of the
// training; back once and for all if the loss rises then. Pure; not thread-safe.
//
//   const bool window_ends = departure.WindowEnds(job.step, job.seconds, job.plan.generation(), job.training_loss);
//   if (departure.is_before() && departure.IsToLook(job.step, window_ends)) { if (...) { departure.Leave(); return ...;
//   } } if (window_ends && departure.Returns()) return ...;
class Departure {
 public:
  // `policy`: its name, for errors.
  Departure(const v1::PolicyPace& pace, std::string policy) : policy_(std::move(policy)), pace_(pace) {}

  bool is_before() const { return state_ == kBefore; }
  bool is_away() const { return state_ == kAway; }

  // Whether a window ends here, as of Pace; its loss is noted.
  bool WindowEnds(int64_t step, double seconds, uint64_t generation, std::optional<double> loss);
  // Before: whether what the rules cost is to be looked at now: when a window ends, and between when the workers have
  // made some more steps. If so, it counts as looked at.
  bool IsToLook(int64_t step, bool window_ends);
  // A window has ended that wants to leave, or not: whether enough of them agree.
  bool Confirms(bool wanted) { return pace_.Confirms(wanted ? 1 : 0); }
  // The rules are left. Losses from now on are held to those up to now.
  void Leave();
  // While away, once a window has ended: whether the loss has risen, so that the job goes back.
  bool Returns();

  // One character. Of empty text: of a job that begins. InvalidArgument names the policy. Of a job that was away, what
  // the loss was before is not known any more: only one that is not finite brings it back.
  std::string Memory() const { return std::string(1, state_); }
  absl::Status Restore(absl::string_view memory);

 private:
  static constexpr char kBefore = 's';
  static constexpr char kAway = 'a';
  static constexpr char kBack = 'b';

  const std::string policy_;
  Pace pace_;
  LossBand band_;
  char state_ = kBefore;
  // The step at which what the rules cost was looked at last.
  int64_t looked_at_ = 0;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_DEPARTURE_H_
