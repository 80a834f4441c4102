// SYNC with frequent exchanges, and local SGD with fewer of them once the learning rate is low, if they cost enough;
// back once and for all if the loss rises then. After Lin, Stich, Patel and Jaggi 2020, "Don't use large mini-batches,
// use local SGD"; that it measures first, goes earlier if exchanges cost too much, and goes back, is added. While the
// rate is high it exchanges often if batches between two exchanges lead the workers apart because their data differ, or
// if the loss has stopped falling since it went. What the exchanges cost is what SYNC costs in sync_then_async.cc.
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/config/local_sgd.h"
#include "common/learning_rate_schedule.h"
#include "coordinator/rules/policies/measured_steps.h"
#include "coordinator/rules/policies/parts/departure.h"
#include "coordinator/rules/policies/parts/drift.h"
#include "coordinator/rules/policies/parts/stall.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/policy_change.h"

namespace rubato::coordinator {
namespace {

class PostLocalPolicy final : public ModePolicy {
 public:
  explicit PostLocalPolicy(const v1::JobConfig& config) : config_(config), policy_(config.consistency().post_local()) {
    departure_.emplace(config.consistency().policy_pace(), "POST_LOCAL");
  }

  std::optional<PlanChange> Decide(const JobSnapshot& job) override {
    const bool is_before = departure_->is_before();
    if (!is_before && !departure_->is_away()) return std::nullopt;
    const int64_t batches = is_before ? BatchesPerStep(config_) : policy_.sync_every();
    if (job.plan.mode() != v1::SYNC || BatchesPerStep(config_, job.plan) != batches) return std::nullopt;
    drift_.Note(job.plan.generation(), job.gradients, batches);
    // A window has as many batches under both rules.
    const bool ends = departure_->WindowEnds(job.step * batches, job.seconds, job.plan.generation(), job.training_loss);
    if (is_before) return LeaveIfDue(job, ends);
    if (!ends) return std::nullopt;
    if (departure_->Returns()) return GoBack(job, "the loss has risen");
    const bool stalls = Stalls(job);
    const bool drifts = Drifts() && !LoweredRate(job).has_value();
    if (!stalls && !drifts) return std::nullopt;
    waits_for_rate_ = true;
    departure_.emplace(config_.consistency().policy_pace(), "POST_LOCAL");
    return GoBack(job, drifts ? "the workers' data lead them apart" : "the loss has stopped falling");
  }

  // What the departure remembers, after a p for patient if only a lowered rate is a reason to leave.
  std::string Memory() const override { return absl::StrCat(waits_for_rate_ ? "p" : "", departure_->Memory()); }
  absl::Status Restore(absl::string_view memory) override {
    waits_for_rate_ = absl::ConsumePrefix(&memory, "p");
    return departure_->Restore(memory);
  }

 private:
  // With as few exchanges as the policy wants, as far as is known.
  bool Drifts() const { return drift_.Ratio(policy_.sync_every()).value_or(0) > 1; }

  // While the rate is high: what stalls at a low one has learned what it will.
  bool Stalls(const JobSnapshot& job) {
    if (LoweredRate(job).has_value()) {
      stall_.Forget();
    } else {
      stall_.Add(job.training_loss);
    }
    return stall_.stalled();
  }

  PlanChange GoBack(const JobSnapshot& job, absl::string_view why) const {
    return ExchangeEvery(job.plan, BatchesPerStep(config_),
                         absl::StrCat("post_local: ", why, " since workers exchange every ", policy_.sync_every(),
                                      " batches, so the job goes back to every ", BatchesPerStep(config_)));
  }

  // If exchanges cost too much it does not wait for a window, which has many steps, to end.
  std::optional<PlanChange> LeaveIfDue(const JobSnapshot& job, bool window_ends) {
    if (!departure_->IsToLook(job.step, window_ends)) return std::nullopt;
    const std::optional<MeasuredSteps> steps = MeasureSyncSteps(job);
    if (!steps.has_value()) return std::nullopt;
    const double now = BatchSeconds(*steps, BatchesPerStep(config_), BatchesPerStep(config_));
    const double then = BatchSeconds(*steps, BatchesPerStep(config_), policy_.sync_every());
    const double gain = now / then - 1;
    const bool gains = gain >= policy_.gain_min();
    const double done = TrainedShare(config_.training(), job);
    const bool costs_too_much = gains && !waits_for_rate_ && !Drifts() && done * gain >= policy_.cost_max();
    const std::optional<double> lowered = LoweredRate(job);
    const bool is_due = window_ends && departure_->Confirms(gains && lowered.has_value());
    if (!costs_too_much && !is_due) return std::nullopt;
    departure_->Leave();
    stall_.Forget();
    const std::string why =
        lowered.has_value()
            ? absl::StrFormat("the schedule has lowered the learning rate to %.3g of its peak", *lowered)
            : absl::StrFormat("%.3g %% of the training is done, and exchanges cost too much", done * 100);
    return ExchangeEvery(
        job.plan, policy_.sync_every(),
        absl::StrFormat("post_local: %s; with an exchange every %d batches instead of %d a batch takes %.3g ms "
                        "instead of %.3g ms",
                        why, policy_.sync_every(), BatchesPerStep(config_), then * 1000, now * 1000));
  }

  // The schedule's factor, if it is low and was high before.
  std::optional<double> LoweredRate(const JobSnapshot& job) const {
    const v1::LearningRateSchedule& schedule = config_.optimizer().schedule();
    const double factor = ScheduleFactor(schedule, job.epoch, job.step);
    const bool is_low = factor <= policy_.rate_factor() && !IsWarmUp(schedule, job.epoch, job.step);
    return is_low ? std::optional<double>(factor) : std::nullopt;
  }

  const v1::JobConfig config_;
  const v1::PostLocalPolicy policy_;
  // Another one after it came back because the workers did not learn as they should.
  std::optional<Departure> departure_;
  Stall stall_;
  Drift drift_;
  bool waits_for_rate_ = false;
};

}  // namespace

std::unique_ptr<ModePolicy> MakePostLocalPolicy(const v1::JobConfig& config) {
  return std::make_unique<PostLocalPolicy>(config);
}

}  // namespace rubato::coordinator
