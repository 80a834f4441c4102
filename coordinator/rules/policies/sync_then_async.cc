// SYNC for the first part of the training, then ASYNC or SSP if that trains more examples a second; back once and for
// all if the loss rises then. After Li, Mao and Xu 2021, "Sync-Switch: hybrid parameter synchronization for distributed
// deep learning"; that it measures first, ends SYNC where it costs too much, and goes back, is added.
//
// What SYNC costs: if without it the job makes 1 + g times as many steps a second, a part d of the training takes
// d (1 + g) times as long as the whole takes then, instead of d times: d g is lost.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/rules/policies/measured_steps.h"
#include "coordinator/rules/policies/parts/loss_band.h"
#include "coordinator/rules/policies/parts/memory_error.h"
#include "coordinator/rules/policies/parts/pace.h"
#include "coordinator/rules/policies/parts/step_order.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/policy_change.h"

namespace rubato::coordinator {
namespace {

class SyncThenAsyncPolicy final : public ModePolicy {
 public:
  explicit SyncThenAsyncPolicy(const v1::JobConfig& config)
      : config_(config), policy_(config.consistency().sync_then_async()), pace_(config.consistency().policy_pace()) {}

  std::optional<PlanChange> Decide(const JobSnapshot& job) override {
    if (state_ == kBack || job.plan.mode() != (state_ == kFirst ? v1::SYNC : policy_.then())) return std::nullopt;
    const bool window_ends = pace_.WindowEnds(job.step, job.seconds, job.plan.generation());
    if (window_ends) band_.Add(job.training_loss);
    if (state_ == kFirst) return Leave(job, window_ends);
    return window_ends ? Return() : std::nullopt;
  }

  std::string Memory() const override { return std::string(1, state_); }
  absl::Status Restore(absl::string_view memory) override {
    const char state = memory.empty() ? kFirst : memory.front();
    if (memory.size() > 1 || (state != kFirst && state != kThen && state != kBack)) {
      return MemoryError(
          "SYNC_THEN_ASYNC", memory,
          absl::StrCat(std::string(1, kFirst), ", ", std::string(1, kThen), " or ", std::string(1, kBack)));
    }
    state_ = state;
    // What the loss was before the change is not known any more: only one that is not finite brings the job back.
    if (state_ == kThen) band_.Freeze();
    return absl::OkStatus();
  }

 private:
  static constexpr char kFirst = 's';
  static constexpr char kThen = 'a';
  static constexpr char kBack = 'b';

  std::optional<PlanChange> Leave(const JobSnapshot& job, bool window_ends) {
    // Between the ends of windows it is looked at where the workers have made some more steps.
    if (!window_ends && job.step < looked_at_ + static_cast<int64_t>(kStepsToJudge)) return std::nullopt;
    looked_at_ = job.step;
    const std::optional<MeasuredSteps> steps = MeasureSyncSteps(job);
    if (!steps.has_value()) return std::nullopt;
    const double gain = StepsPerSecondApart(*steps) / StepsPerSecondTogether(*steps) - 1;
    const bool gains = gain >= policy_.gain_min();
    const bool costs_too_much = gains && Done(job) * gain >= policy_.cost_max();
    const bool is_due = Done(job) >= policy_.share() && window_ends && pace_.Confirms(gains ? 1 : 0);
    if (!costs_too_much && !is_due) return std::nullopt;
    state_ = kThen;
    band_.Freeze();
    return PolicyChange(
        config_, policy_.then(), policy_.staleness_bound(), 0,
        absl::StrFormat("sync_then_async: %.3g %% of the training is done, and without waiting for each other "
                        "the workers make %.3g steps/s instead of %.3g",
                        Done(job) * 100, StepsPerSecondApart(*steps), StepsPerSecondTogether(*steps)));
  }

  std::optional<PlanChange> Return() {
    if (!band_.left()) return std::nullopt;
    state_ = kBack;
    return PolicyChange(config_, v1::SYNC, 0, config_.consistency().quorum(),
                        "sync_then_async: the loss has risen since the workers left SYNC, so the job goes back to it");
  }

  // Part of the training, 0 to 1.
  double Done(const JobSnapshot& job) const {
    const v1::TrainingConfig& training = config_.training();
    const double epochs = training.epochs() > 0 ? job.epoch / static_cast<double>(training.epochs()) : 0;
    const double steps =
        training.max_steps() > 0 ? static_cast<double>(job.step) / static_cast<double>(training.max_steps()) : 0;
    return std::max(epochs, steps);
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
  Pace pace_;
  LossBand band_;
  char state_ = kFirst;
  // The step at which what SYNC costs was looked at last.
  int64_t looked_at_ = 0;
};

}  // namespace

std::unique_ptr<ModePolicy> MakeSyncThenAsyncPolicy(const v1::JobConfig& config) {
  return std::make_unique<SyncThenAsyncPolicy>(config);
}

}  // namespace rubato::coordinator
