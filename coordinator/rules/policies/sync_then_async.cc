// SYNC for the first part of the training, then ASYNC or SSP if that trains more examples a second; back once and for
// all if the loss rises then. After Li, Mao and Xu 2021, "Sync-Switch: hybrid parameter synchronization for distributed
// deep learning"; that it measures first, ends SYNC if it costs too much, and goes back, is added.
//
// What SYNC costs: if without it the job makes 1 + g times as many steps a second, a part d of the training takes
// d (1 + g) times as long as the whole takes then, instead of d times: d g is lost.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/rules/policies/measured_steps.h"
#include "coordinator/rules/policies/parts/departure.h"
#include "coordinator/rules/policies/parts/step_order.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/policy_change.h"

namespace rubato::coordinator {
namespace {

class SyncThenAsyncPolicy final : public ModePolicy {
 public:
  explicit SyncThenAsyncPolicy(const v1::JobConfig& config)
      : config_(config),
        policy_(config.consistency().sync_then_async()),
        departure_(config.consistency().policy_pace(), "SYNC_THEN_ASYNC") {}

  std::optional<PlanChange> Decide(const JobSnapshot& job) override {
    const bool is_before = departure_.is_before();
    if (!is_before && !departure_.is_away()) return std::nullopt;
    if (job.plan.mode() != (is_before ? v1::SYNC : policy_.then())) return std::nullopt;
    const bool window_ends = departure_.WindowEnds(job.step, job.seconds, job.plan.generation(), job.training_loss);
    if (is_before) return Leave(job, window_ends);
    if (!window_ends || !departure_.Returns()) return std::nullopt;
    return PolicyChange(config_, v1::SYNC, 0, config_.consistency().quorum(),
                        "sync_then_async: the loss has risen since the workers left SYNC, so the job goes back to it");
  }

  std::string Memory() const override { return departure_.Memory(); }
  absl::Status Restore(absl::string_view memory) override { return departure_.Restore(memory); }

 private:
  std::optional<PlanChange> Leave(const JobSnapshot& job, bool window_ends) {
    if (!departure_.IsToLook(job.step, window_ends)) return std::nullopt;
    const std::optional<MeasuredSteps> steps = MeasureSyncSteps(job);
    if (!steps.has_value()) return std::nullopt;
    const double done = TrainedShare(config_.training(), job);
    const double gain = StepsPerSecondApart(*steps) / StepsPerSecondTogether(*steps) - 1;
    const bool gains = gain >= policy_.gain_min();
    const bool costs_too_much = gains && done * gain >= policy_.cost_max();
    const bool is_due = done >= policy_.share() && window_ends && departure_.Confirms(gains);
    if (!costs_too_much && !is_due) return std::nullopt;
    departure_.Leave();
    return PolicyChange(
        config_, policy_.then(), policy_.staleness_bound(), 0,
        absl::StrFormat("sync_then_async: %.3g %% of the training is done, and without waiting for each other "
                        "the workers make %.3g steps/s instead of %.3g",
                        done * 100, StepsPerSecondApart(*steps), StepsPerSecondTogether(*steps)));
  }

  // Of all workers.
  double StepsPerSecondTogether(const MeasuredSteps& steps) const {
    return static_cast<double>(steps.quorum) / steps.StepSeconds(steps.quorum);
  }
  double StepsPerSecondApart(const MeasuredSteps& steps) const {
    double rate = 0;
    for (double mean : steps.means) rate += 1 / (mean + steps.overhead);
    return rate;
  }

  const v1::JobConfig config_;
  const v1::SyncThenAsyncPolicy policy_;
  Departure departure_;
};

}  // namespace

std::unique_ptr<ModePolicy> MakeSyncThenAsyncPolicy(const v1::JobConfig& config) {
  return std::make_unique<SyncThenAsyncPolicy>(config);
}

}  // namespace rubato::coordinator
