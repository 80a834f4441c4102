// Stays in SYNC and gives each worker a part of the examples of a step that is in proportion to its speed, so that all
// are done at the same time; the sum stays, and with it the update, which is the mean over all examples. After Chen,
// Weng, Wang, Li and Li 2020, "Semi-dynamic load balancing: efficient distributed learning in non-dedicated
// environments" (LB-BSP); that a change has to bring what it promised, or is taken back, is added: a worker that is
// slow whatever its batch gets no faster with a smaller one.
#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/config/batch_sizes.h"
#include "coordinator/rules/policies/measured_steps.h"
#include "coordinator/rules/policies/parts/batch_shares.h"
#include "coordinator/rules/policies/parts/memory_error.h"
#include "coordinator/rules/policies/parts/pace.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/policy_change.h"

namespace rubato::coordinator {
namespace {

// What a change is held to.
struct Promise {
  std::map<uint32_t, uint32_t> batch_sizes;
  double before_seconds = 0;
  double after_seconds = 0;
  // Of a step, over the windows since.
  double sum_seconds = 0;
  uint32_t windows = 0;
};

class BalancePolicy final : public ModePolicy {
 public:
  explicit BalancePolicy(const v1::JobConfig& config)
      : config_(config), policy_(config.consistency().balance()), pace_(config.consistency().policy_pace()) {}

  std::optional<PlanChange> Decide(const JobSnapshot& job) override {
    if (job.plan.mode() != v1::SYNC || job.plan.quorum() != 0) return std::nullopt;
    if (job.plan.generation() != generation_) EnterPlan(job.plan);
    if (!pace_.WindowEnds(job.step, job.seconds, job.plan.generation())) return std::nullopt;
    const std::optional<MeasuredSteps> steps = MeasureSyncSteps(job);
    if (!steps.has_value() || !AddWindow(job)) return std::nullopt;
    const double step_seconds = steps->StepSeconds(steps->members());
    if (!promise_.has_value()) return Judge(job, step_seconds);
    // The change may still be in flight.
    return promise_->batch_sizes == BatchSizes(job.plan) ? Check(job, step_seconds) : std::nullopt;
  }

  // How many changes it has made.
  std::string Memory() const override { return absl::StrCat(pace_.changes()); }
  absl::Status Restore(absl::string_view memory) override {
    uint32_t changes = 0;
    if (!memory.empty() && !absl::SimpleAtoi(memory, &changes)) {
      return MemoryError("BALANCE", memory, "the number of changes");
    }
    pace_.Restore(changes);
    return absl::OkStatus();
  }

 private:
  // Rates are of the same members as long as the plan holds.
  void EnterPlan(const v1::Plan& plan) {
    generation_ = plan.generation();
    windows_.clear();
    // An operator, or a worker that came or went, has changed them since.
    if (promise_.has_value() && promise_->batch_sizes != BatchSizes(plan)) promise_.reset();
  }

  // The members' rates, if all are known.
  bool AddWindow(const JobSnapshot& job) {
    const std::optional<std::vector<const JobSnapshot::Worker*>> members = MembersAtWork(job);
    std::vector<double> rates;
    for (const JobSnapshot::Worker* member : *members) {
      if (member->work_rate <= 0) return false;
      rates.push_back(member->work_rate);
    }
    windows_.push_back(std::move(rates));
    if (windows_.size() > config_.consistency().policy_pace().windows_agreeing()) windows_.pop_front();
    return true;
  }

  // Of the windows but the last so many.
  std::vector<double> MeanRates(size_t but) const {
    std::vector<double> rates(windows_.front().size(), 0);
    const size_t count = windows_.size() - but;
    for (size_t window = 0; window < count; ++window) {
      for (size_t i = 0; i < rates.size(); ++i) rates[i] += windows_[window][i] / static_cast<double>(count);
    }
    return rates;
  }

  // In proportion to the rates.
  std::vector<uint32_t> Shares(const std::vector<double>& rates) const {
    const auto members = static_cast<int64_t>(rates.size());
    return BatchShares(rates, members * config_.training().batch_size(), LargestBatch(config_));
  }

  std::optional<PlanChange> Judge(const JobSnapshot& job, double step_seconds) {
    std::vector<uint32_t> present;
    for (const v1::TaskId& member : job.plan.members()) {
      present.push_back(static_cast<uint32_t>(BatchSize(config_, job.plan, member.index())));
    }
    // What the windows before say has to hold in this one: it does not of members that are slow by chance.
    double after_seconds = step_seconds;
    if (windows_.size() > 1) {
      const std::vector<double>& rates = windows_.back();
      after_seconds += LongestBatch(Shares(MeanRates(/*but=*/1)), rates) - LongestBatch(present, rates);
    }
    const bool gains = after_seconds > 0 && step_seconds / after_seconds - 1 >= policy_.imbalance_min();
    if (!pace_.Confirms(gains ? 1 : 0)) return std::nullopt;
    const std::vector<uint32_t> wanted = Shares(MeanRates(/*but=*/0));
    promise_ = Promise{.before_seconds = step_seconds, .after_seconds = after_seconds};
    for (size_t i = 0; i < wanted.size(); ++i) {
      promise_->batch_sizes[job.plan.members(static_cast<int>(i)).index()] = wanted[i];
    }
    const auto [least, most] = std::minmax_element(wanted.begin(), wanted.end());
    return Change(job, promise_->batch_sizes,
                  absl::StrFormat("balance: with batches of %d to %d examples, in proportion to the workers' speeds, a "
                                  "step takes %.3g ms instead of %.3g",
                                  *least, *most, after_seconds * 1e3, step_seconds * 1e3));
  }

  // Half of what was promised is enough: speeds change.
  std::optional<PlanChange> Check(const JobSnapshot& job, double step_seconds) {
    promise_->sum_seconds += step_seconds;
    if (++promise_->windows < config_.consistency().policy_pace().windows_agreeing()) return std::nullopt;
    const double seconds = promise_->sum_seconds / promise_->windows;
    const Promise promise = *std::exchange(promise_, std::nullopt);
    if (seconds <= (promise.before_seconds + promise.after_seconds) / 2) return std::nullopt;
    pace_.Restore(pace_.changes() + 1);
    return Change(job, {},
                  absl::StrFormat("balance: a step takes %.3g ms and not %.3g as it would if workers were faster with "
                                  "smaller batches, so all have training.batch_size again",
                                  seconds * 1e3, promise.after_seconds * 1e3));
  }

  // The update is the mean of as many examples, so the learning rate stays.
  PlanChange Change(const JobSnapshot& job, std::map<uint32_t, uint32_t> batch_sizes, std::string reason) const {
    PlanChange change = PolicyChange(config_, v1::SYNC, 0, 0, std::move(reason));
    change.learning_rate_scale = job.plan.learning_rate_scale();
    change.batch_sizes = std::move(batch_sizes);
    return change;
  }

  const v1::JobConfig config_;
  const v1::BalancePolicy policy_;
  Pace pace_;
  uint64_t generation_ = 0;
  // By member, of the latest windows under the plan.
  std::deque<std::vector<double>> windows_;
  std::optional<Promise> promise_;
};

}  // namespace

std::unique_ptr<ModePolicy> MakeBalancePolicy(const v1::JobConfig& config) {
  return std::make_unique<BalancePolicy>(config);
}

}  // namespace rubato::coordinator
