#ifndef RUBATO_COORDINATOR_RULES_POLICIES_PARTS_GUARDED_CHANGES_H_
#define RUBATO_COORDINATOR_RULES_POLICIES_PARTS_GUARDED_CHANGES_H_

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

// The changes of a policy that makes one now and then, at its pace, until the training loss has risen after one: then
// it gives up. Pure; not thread-safe.
//
//   if (changes.given_up() || !changes.WindowEnds(job.step, job.seconds, job.plan.generation())) return std::nullopt;
//   if (changes.GivesUp(job.training_loss)) return ...;     // Back to the rules of the config, for good.
//   if (!changes.Confirms(direction, gain)) return std::nullopt;
class GuardedChanges {
 public:
  // `policy`: its name, for errors.
  GuardedChanges(const v1::PolicyPace& pace, std::string policy) : policy_(std::move(policy)), pace_(pace) {}

  bool given_up() const { return given_up_; }
  // As of Pace.
  bool WindowEnds(int64_t step, double seconds, uint64_t generation) {
    return pace_.WindowEnds(step, seconds, generation);
  }
  // A window with this loss has ended: whether it has risen since the last change.
  bool GivesUp(std::optional<double> loss);
  // As of Pace. If it is done now, later losses are held to those up to now.
  bool Confirms(int direction, double gain = 0);

  // "<changes> <0, or 1: it has given up>".
  std::string Memory() const;
  // Of empty text: of a job that begins. InvalidArgument names the policy.
  absl::Status Restore(absl::string_view memory);

 private:
  const std::string policy_;
  Pace pace_;
  LossBand band_;
  bool given_up_ = false;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_POLICIES_PARTS_GUARDED_CHANGES_H_
