// Stays in SYNC and does not wait for members that are much slower than the others: it lowers the quorum by as many,
// and raises it again when they are fast. They stay members and go on computing, so they are measured as the others
// are; what they push too late is dropped, and they are moved to the step that the others are at. Li, Mao and Xu 2021,
// "Sync-Switch: hybrid parameter synchronization for distributed deep learning", take stragglers for those whose
// throughput is under the mean by more than a standard deviation; that the job must train faster without them is added.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "coordinator/rules/policies/measured_steps.h"
#include "coordinator/rules/policies/parts/guarded_changes.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/policy_change.h"

namespace rubato::coordinator {
namespace {

// Places of the members whose rate is under the mean by more than so many standard deviations, the slowest first.
std::vector<size_t> Slow(const std::vector<double>& step_seconds, double deviations) {
  double sum = 0, squares = 0;
  for (double seconds : step_seconds) {
    sum += 1 / seconds;
    squares += 1 / (seconds * seconds);
  }
  const auto count = static_cast<double>(step_seconds.size());
  const double mean = sum / count;
  const double least = mean - deviations * std::sqrt(std::max(0.0, squares / count - mean * mean));
  std::vector<size_t> slow;
  for (size_t i = 0; i < step_seconds.size(); ++i) {
    if (1 / step_seconds[i] < least) slow.push_back(i);
  }
  std::sort(slow.begin(), slow.end(), [&](size_t a, size_t b) { return step_seconds[a] > step_seconds[b]; });
  return slow;
}

class StragglerPolicy final : public ModePolicy {
 public:
  explicit StragglerPolicy(const v1::JobConfig& config)
      : config_(config),
        policy_(config.consistency().straggler()),
        changes_(config.consistency().policy_pace(), "STRAGGLER") {}

  std::optional<PlanChange> Decide(const JobSnapshot& job) override {
    if (changes_.given_up() || job.plan.mode() != v1::SYNC) return std::nullopt;
    if (!changes_.WindowEnds(job.step, job.seconds, job.plan.generation())) return std::nullopt;
    if (changes_.GivesUp(job.training_loss)) return GiveUp();
    const std::optional<MeasuredSteps> steps = MeasureSyncSteps(job);
    if (!steps.has_value() || *std::min_element(steps->means.begin(), steps->means.end()) <= 0) return std::nullopt;
    const std::vector<size_t> left_out = LeftOut(*steps);
    const size_t awaited = steps->members() - left_out.size();
    const double gain = ExamplesRate(*steps, awaited) / ExamplesRate(*steps, steps->quorum) - 1;
    if (!changes_.Confirms(Direction(*steps, awaited, gain), gain)) return std::nullopt;
    return Change(left_out.empty() ? 0 : static_cast<uint32_t>(awaited), Reason(job, *steps, left_out));
  }

  std::string Memory() const override { return changes_.Memory(); }
  absl::Status Restore(absl::string_view memory) override { return changes_.Restore(memory); }

 private:
  static double ExamplesRate(const MeasuredSteps& steps, size_t k) {
    return static_cast<double>(k) / steps.StepSeconds(k);
  }

  // Places of the members that a step should not wait for. Nobody if the job gains too little by it: of members that
  // are equal some are always under the mean.
  std::vector<size_t> LeftOut(const MeasuredSteps& steps) const {
    std::vector<size_t> slow = Slow(steps.means, policy_.deviations());
    const auto least = static_cast<size_t>(std::ceil(policy_.share_min() * static_cast<double>(steps.members())));
    const size_t most = steps.members() - std::min(std::max<size_t>(least, 1), steps.members());
    if (slow.size() > most) slow.resize(most);
    const double without = ExamplesRate(steps, steps.members() - slow.size());
    const double gain = without / ExamplesRate(steps, steps.members()) - 1;
    return gain >= policy_.gain_min() ? slow : std::vector<size_t>();
  }

  // To leave more of them out must be worth it; to take some back must cost nothing.
  int Direction(const MeasuredSteps& steps, size_t awaited, double gain) const {
    if (awaited < steps.quorum && gain >= policy_.gain_min()) return -1;
    return awaited > steps.quorum && gain >= 0 ? 1 : 0;
  }

  static std::string Reason(const JobSnapshot& job, const MeasuredSteps& steps, const std::vector<size_t>& left_out) {
    if (left_out.empty())
      return "straggler: no member is much slower than the others any more, so the job waits for all";
    std::vector<std::string> names;
    for (size_t place : left_out) {
      names.push_back(absl::StrFormat("worker %d (%.3g ms a step)", job.plan.members(static_cast<int>(place)).index(),
                                      steps.means[place] * 1e3));
    }
    const size_t awaited = steps.members() - left_out.size();
    return absl::StrFormat("straggler: without waiting for %s a step takes %.3g ms instead of %.3g",
                           absl::StrJoin(names, ", "), steps.StepSeconds(awaited) * 1e3,
                           steps.StepSeconds(steps.quorum) * 1e3);
  }

  std::optional<PlanChange> GiveUp() {
    return Change(0, "straggler: the loss has risen since the last change, so the job waits for everybody again");
  }

  PlanChange Change(uint32_t quorum, std::string reason) const {
    return PolicyChange(config_, v1::SYNC, 0, quorum, std::move(reason));
  }

  const v1::JobConfig config_;
  const v1::StragglerPolicy policy_;
  GuardedChanges changes_;
};

}  // namespace

std::unique_ptr<ModePolicy> MakeStragglerPolicy(const v1::JobConfig& config) {
  return std::make_unique<StragglerPolicy>(config);
}

}  // namespace rubato::coordinator
