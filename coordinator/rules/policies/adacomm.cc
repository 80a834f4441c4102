// Local SGD that exchanges more often the lower the loss is. After Wang and Joshi 2019, "Adaptive communication
// strategies to achieve the best error-runtime trade-off in local-update SGD": once an interval, from k batches between
// two exchanges to ceil(k0 sqrt((rate0 F) / (rate F0))) of them if these are fewer, otherwise to a part of k. F is the
// training loss and F0 the first one, rate0 the peak of the learning rate's schedule. Up again only if the schedule
// has lowered the rate. Added is that it takes the fewest at once if exchanges cost next to nothing, and that k only
// goes up, to what the formula says, as long as the loss falls and nothing shows that the batches lead the workers
// apart by more than chance.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/config/local_sgd.h"
#include "common/learning_rate_schedule.h"
#include "coordinator/rules/policies/measured_steps.h"
#include "coordinator/rules/policies/parts/drift.h"
#include "coordinator/rules/policies/parts/memory_error.h"
#include "coordinator/rules/policies/parts/pace.h"
#include "coordinator/rules/policies/parts/stall.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/policy_change.h"

namespace rubato::coordinator {
namespace {

class AdaCommPolicy final : public ModePolicy {
 public:
  explicit AdaCommPolicy(const v1::JobConfig& config)
      : config_(config),
        policy_(config.consistency().adacomm()),
        pace_(config.consistency().policy_pace()),
        batches_(BatchesPerStep(config)) {}

  std::optional<PlanChange> Decide(const JobSnapshot& job) override {
    if (!first_loss_.has_value()) first_loss_ = Positive(job.training_loss);
    const bool is_own = job.plan.mode() == v1::SYNC && BatchesPerStep(config_, job.plan) == batches_;
    if (is_own) drift_.Note(job.plan.generation(), job.gradients, batches_);
    // A window has as many batches whatever their number in a step.
    if (!is_own || !pace_.WindowEnds(job.step * batches_, job.seconds, job.plan.generation())) return std::nullopt;
    if (const std::optional<double> loss = Positive(job.training_loss)) losses_.push_back(*loss);
    stall_.Add(job.training_loss);
    ++windows_;
    const std::optional<MeasuredSteps> steps = MeasureSyncSteps(job);
    if (!steps.has_value() || job.plan.quorum() != 0) return std::nullopt;
    const double most = BatchSeconds(*steps, batches_, BatchesPerStep(config_));
    const double fewest = BatchSeconds(*steps, batches_, policy_.sync_every_min());
    if (fewest < (1 + policy_.gain_min()) * most) return TakeTheFewest(job.plan, most, fewest);
    if (windows_ < policy_.interval_windows() || losses_.empty() || !first_loss_.has_value()) return std::nullopt;
    return AtIntervalEnd(job);
  }

  // "<first loss, or -> <batches> <part of the peak that the rate was>".
  std::string Memory() const override {
    return absl::StrFormat("%s %d %.17g", first_loss_.has_value() ? absl::StrFormat("%.17g", *first_loss_) : "-",
                           batches_, factor_);
  }

  absl::Status Restore(absl::string_view memory) override {
    if (memory.empty()) return absl::OkStatus();
    const std::vector<absl::string_view> parts = absl::StrSplit(memory, ' ');
    double loss = 0, factor = 0;
    int64_t batches = 0;
    const bool valid = parts.size() == 3 && (parts[0] == "-" || absl::SimpleAtod(parts[0], &loss)) &&
                       absl::SimpleAtoi(parts[1], &batches) && absl::SimpleAtod(parts[2], &factor);
    if (!valid || !(loss >= 0) || !(factor > 0) || batches < policy_.sync_every_min() ||
        batches > BatchesPerStep(config_)) {
      return MemoryError("ADACOMM", memory, "a loss or -, batches of a step, and a part of the learning rate");
    }
    first_loss_ = Positive(loss);
    batches_ = batches;
    factor_ = factor;
    return absl::OkStatus();
  }

 private:
  static std::optional<double> Positive(std::optional<double> loss) {
    return loss.has_value() && std::isfinite(*loss) && *loss > 0 ? loss : std::nullopt;
  }

  std::optional<PlanChange> TakeTheFewest(const v1::Plan& plan, double most, double fewest) {
    if (batches_ == policy_.sync_every_min()) return std::nullopt;
    return Change(plan, policy_.sync_every_min(),
                  absl::StrFormat("adacomm: exchanges cost next to nothing: a batch takes %.3g ms with sync_every %d "
                                  "and %.3g ms with %d",
                                  fewest * 1000, policy_.sync_every_min(), most * 1000, BatchesPerStep(config_)));
  }

  std::optional<PlanChange> AtIntervalEnd(const JobSnapshot& job) {
    // Of the last windows, as one says little.
    const size_t count = std::min<size_t>(3, losses_.size());
    double loss = 0;
    for (size_t i = losses_.size() - count; i < losses_.size(); ++i) loss += losses_[i] / static_cast<double>(count);
    losses_.clear();
    windows_ = 0;
    const double factor = RateFactor(job);
    const bool rate_has_fallen = factor < std::exchange(factor_, factor);
    const double wanted =
        std::ceil(static_cast<double>(BatchesPerStep(config_)) * std::sqrt(loss / *first_loss_ / factor));
    int64_t batches = static_cast<int64_t>(std::clamp<double>(wanted, static_cast<double>(policy_.sync_every_min()),
                                                              static_cast<double>(BatchesPerStep(config_))));
    const bool is_well = drift_.Ratio(batches_).value_or(0) <= 1 && !stall_.stalled();
    if (is_well) {
      batches = std::max(batches, batches_);
    } else if (batches >= batches_ && !rate_has_fallen) {
      batches =
          std::max<int64_t>(policy_.sync_every_min(), std::llround(policy_.decay() * static_cast<double>(batches_)));
    }
    if (batches == batches_) return std::nullopt;
    return Change(job.plan, batches,
                  absl::StrFormat("adacomm: the training loss is %.3g, from %.3g at first, with %.3g of the schedule's "
                                  "peak rate, so sync_every becomes %d, from %d",
                                  loss, *first_loss_, factor, batches, batches_));
  }

  // The schedule's factor; in the warm-up that of its end.
  double RateFactor(const JobSnapshot& job) const {
    const v1::LearningRateSchedule& schedule = config_.optimizer().schedule();
    if (IsWarmUp(schedule, job.epoch, job.step)) return 1;
    return std::max(1e-6, ScheduleFactor(schedule, job.epoch, job.step));
  }

  PlanChange Change(const v1::Plan& plan, int64_t batches, std::string reason) {
    batches_ = batches;
    losses_.clear();
    stall_.Forget();
    windows_ = 0;
    return ExchangeEvery(plan, batches, std::move(reason));
  }

  const v1::JobConfig config_;
  const v1::AdaCommPolicy policy_;
  Pace pace_;
  // As this policy has set them.
  int64_t batches_;
  std::optional<double> first_loss_;
  double factor_ = 1;
  Drift drift_;
  Stall stall_;
  // Of the interval.
  std::vector<double> losses_;
  uint32_t windows_ = 0;
};

}  // namespace

std::unique_ptr<ModePolicy> MakeAdaCommPolicy(const v1::JobConfig& config) {
  return std::make_unique<AdaCommPolicy>(config);
}

}  // namespace rubato::coordinator
