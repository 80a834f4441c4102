// Stays in SYNC and chooses how many contributions complete a step: those with which the job learns most a second, by
// the order statistics of the members' steps. After Xu, Neglia and Sebastianelli 2020, "Dynamic backup workers for
// parallel machine learning" (DBW), with hysteresis, and with the gradient noise scale as the config gives it.
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/config/local_sgd.h"
#include "coordinator/rules/policies/measured_steps.h"
#include "coordinator/rules/policies/parts/guarded_changes.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/policy_change.h"

namespace rubato::coordinator {
namespace {

class QuorumPolicy final : public ModePolicy {
 public:
  explicit QuorumPolicy(const v1::JobConfig& config)
      : config_(config),
        policy_(config.consistency().quorum_policy()),
        changes_(config.consistency().policy_pace(), "QUORUM") {}

  std::optional<PlanChange> Decide(const JobSnapshot& job) override {
    if (changes_.given_up() || job.plan.mode() != v1::SYNC) return std::nullopt;
    if (!changes_.WindowEnds(job.step, job.seconds, job.plan.generation())) return std::nullopt;
    if (changes_.GivesUp(job.training_loss)) return GiveUp();
    const std::optional<MeasuredSteps> steps = MeasureSyncSteps(job);
    if (!steps.has_value()) return std::nullopt;
    const size_t best = Best(*steps);
    const double gain = Rate(*steps, best) / Rate(*steps, steps->quorum) - 1;
    const int direction = gain >= policy_.gain_min() ? (best > steps->quorum ? 1 : -1) : 0;
    if (!changes_.Confirms(direction, gain)) return std::nullopt;
    return Change(
        best == steps->members() ? 0 : static_cast<uint32_t>(best),
        absl::StrFormat("quorum: with %d of %d contributions a step takes %.3g ms instead of %.3g with %d, and "
                        "training is %.2f times as fast",
                        best, steps->members(), steps->StepSeconds(best) * 1e3, steps->StepSeconds(steps->quorum) * 1e3,
                        steps->quorum, gain + 1));
  }

  std::string Memory() const override { return changes_.Memory(); }
  absl::Status Restore(absl::string_view memory) override { return changes_.Restore(memory); }

 private:
  // How fast the job learns with k contributions to a step, up to a constant.
  double Rate(const MeasuredSteps& steps, size_t k) const {
    const auto contributions = static_cast<double>(k);
    const double examples = contributions * static_cast<double>(ExamplesPerStep(config_));
    const double worth = policy_.has_noise_scale() ? examples / (examples + policy_.noise_scale()) : contributions;
    return worth / steps.StepSeconds(k);
  }

  size_t Best(const MeasuredSteps& steps) const {
    size_t best = steps.members();
    const auto least = static_cast<size_t>(std::ceil(policy_.share_min() * static_cast<double>(steps.members())));
    for (size_t k = std::max<size_t>(least, 1); k < steps.members(); ++k) {
      if (Rate(steps, k) > Rate(steps, best)) best = k;
    }
    return best;
  }

  std::optional<PlanChange> GiveUp() {
    return Change(config_.consistency().quorum(),
                  "quorum: the loss has risen since the last change, so the job goes back to the quorum of its config");
  }

  PlanChange Change(uint32_t quorum, std::string reason) const {
    return PolicyChange(config_, v1::SYNC, 0, quorum, std::move(reason));
  }

  const v1::JobConfig config_;
  const v1::QuorumPolicy policy_;
  GuardedChanges changes_;
};

}  // namespace

std::unique_ptr<ModePolicy> MakeQuorumPolicy(const v1::JobConfig& config) {
  return std::make_unique<QuorumPolicy>(config);
}

}  // namespace rubato::coordinator
