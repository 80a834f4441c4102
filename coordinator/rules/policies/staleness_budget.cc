// Keeps the mean staleness of pushes under a budget: over it, the bound of SSP is lowered as far as it takes, to SYNC
// if no bound is enough; with room under it, the bound is raised if that trains faster. What rules would bring follows
// from the members' latest steps, replayed. Pushes of members that never wait are as stale as there are other members,
// so a budget under that is kept only by rules that make the fast ones wait.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "common/task.h"
#include "coordinator/rules/policies/measured_steps.h"
#include "coordinator/rules/policies/parts/guarded_changes.h"
#include "coordinator/rules/policies/parts/memory_error.h"
#include "coordinator/rules/policies/parts/ssp_replay.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/policy_change.h"

namespace rubato::coordinator {
namespace {

// Rules whose replays differ by less are as good as each other.
constexpr double kAsGood = 0.98;

// Bounds from the tightest on: SYNC, 1, 2, 4 to the largest, and none if the job begins without.
std::vector<int64_t> Rungs(const v1::ConsistencyConfig& consistency) {
  const int64_t most = consistency.staleness_budget().bound_max();
  std::vector<int64_t> rungs = {0};
  for (int64_t bound = 1; bound < most; bound *= 2) rungs.push_back(bound);
  rungs.push_back(most);
  if (consistency.mode() == v1::ASYNC) rungs.push_back(kNoBound);
  return rungs;
}

v1::Mode ModeOf(int64_t bound) { return bound == 0 ? v1::SYNC : bound == kNoBound ? v1::ASYNC : v1::SSP; }

int64_t SspBound(int64_t bound) { return ModeOf(bound) == v1::SSP ? bound : 0; }

class StalenessBudgetPolicy final : public ModePolicy {
 public:
  explicit StalenessBudgetPolicy(const v1::JobConfig& config)
      : config_(config),
        policy_(config.consistency().staleness_budget()),
        changes_(config.consistency().policy_pace(), "STALENESS_BUDGET"),
        history_(config.consistency().policy_pace().windows_agreeing()),
        rungs_(Rungs(config.consistency())),
        ceiling_(rungs_.size() - 1) {}

  std::optional<PlanChange> Decide(const JobSnapshot& job) override {
    if (changes_.given_up() || job.plan.quorum() != 0) return std::nullopt;
    const bool ends = changes_.WindowEnds(job.step, job.seconds, job.plan.generation());
    if (!ends && job.plan.generation() == generation_) return std::nullopt;
    const std::optional<double> staleness = TakeWindow(job);
    if (!ends || !staleness.has_value()) return std::nullopt;
    if (changes_.GivesUp(job.training_loss)) return GiveUp();
    const std::optional<WorkToReplay> window = MeasureWork(job);
    if (!window.has_value()) return std::nullopt;
    const WorkToReplay work = history_.Add(job.plan.generation(), *window);
    return *staleness > policy_.budget() ? Tighten(work, *staleness) : Loosen(work, *staleness);
  }

  // What the changes remember, and the loosest rung.
  std::string Memory() const override { return absl::StrCat(changes_.Memory(), " ", ceiling_); }
  absl::Status Restore(absl::string_view memory) override {
    if (memory.empty()) return absl::OkStatus();
    const size_t space = memory.rfind(' ');
    uint32_t ceiling = 0;
    if (space == memory.npos || !absl::SimpleAtoi(memory.substr(space + 1), &ceiling) || ceiling >= rungs_.size()) {
      return MemoryError("STALENESS_BUDGET", memory, "what changes remember, a space, and the number of a rung");
    }
    RUBATO_RETURN_IF_ERROR(changes_.Restore(memory.substr(0, space)));
    ceiling_ = ceiling;
    return absl::OkStatus();
  }

 private:
  // The mean staleness since the last call, if anything was pushed; absent when a plan begins.
  std::optional<double> TakeWindow(const JobSnapshot& job) {
    const bool same = std::exchange(generation_, job.plan.generation()) == job.plan.generation();
    const double pushes = job.pushes - std::exchange(pushes_, job.pushes);
    const double sum = job.staleness_sum - std::exchange(staleness_sum_, job.staleness_sum);
    if (!same || pushes <= 0) return std::nullopt;
    return sum / pushes;
  }

  size_t Rung(int64_t bound) const {
    const auto next = std::upper_bound(rungs_.begin(), rungs_.end(), bound);
    return static_cast<size_t>(next - rungs_.begin()) - 1;
  }

  // What the replay of the present rules has to be multiplied by to say what was measured.
  double Correction(const WorkToReplay& work, double staleness) {
    const double replayed = ReplaySsp(work.seconds, work.overhead, work.bound).mean_staleness;
    if (replayed > 0 && staleness > 0) correction_ = std::clamp(staleness / replayed, 0.5, 2.0);
    return correction_;
  }

  std::optional<PlanChange> Tighten(const WorkToReplay& work, double staleness) {
    const double correction = Correction(work, staleness);
    const size_t present = Rung(work.bound);
    size_t target = present == 0 ? 0 : present - 1;
    while (target > 0 &&
           correction * ReplaySsp(work.seconds, work.overhead, rungs_[target]).mean_staleness > policy_.budget()) {
      --target;
    }
    if (!changes_.Confirms(target < present ? -1 : 0)) return std::nullopt;
    ceiling_ = present - 1;
    return Change(rungs_[target],
                  absl::StrFormat("staleness_budget: pushes are %.3g updates old in the mean, over the budget of %.3g",
                                  staleness, policy_.budget()));
  }

  std::optional<PlanChange> Loosen(const WorkToReplay& work, double staleness) {
    const double correction = Correction(work, staleness);
    const SspRun now = ReplaySsp(work.seconds, work.overhead, work.bound);
    size_t best = Rung(work.bound);
    SspRun best_run = now;
    for (size_t rung = best + 1; rung <= ceiling_; ++rung) {
      const SspRun run = ReplaySsp(work.seconds, work.overhead, rungs_[rung]);
      if (correction * run.mean_staleness > policy_.budget() ||
          kAsGood * run.steps_per_second <= best_run.steps_per_second) {
        continue;
      }
      best = rung;
      best_run = run;
    }
    const bool room = staleness <= policy_.room() * policy_.budget();
    const double gain = best_run.steps_per_second / now.steps_per_second - 1;
    if (!changes_.Confirms(room && gain >= policy_.gain_min() ? 1 : 0, gain)) return std::nullopt;
    return Change(
        rungs_[best],
        absl::StrFormat("staleness_budget: pushes are %.3g updates old in the mean, and %.3g with %s, with which the "
                        "workers make %.3g steps/s instead of %.3g",
                        staleness, correction * best_run.mean_staleness,
                        ModeName(ModeOf(rungs_[best]), SspBound(rungs_[best])), best_run.steps_per_second,
                        now.steps_per_second));
  }

  std::optional<PlanChange> GiveUp() {
    return Change(0, "staleness_budget: the loss has risen since the last change, so the job goes back to SYNC");
  }

  PlanChange Change(int64_t bound, std::string reason) const {
    return PolicyChange(config_, ModeOf(bound), SspBound(bound), 0, std::move(reason));
  }

  const v1::JobConfig config_;
  const v1::StalenessBudgetPolicy policy_;
  GuardedChanges changes_;
  WorkHistory history_;
  const std::vector<int64_t> rungs_;
  // The loosest rung that was not found to be over the budget.
  size_t ceiling_;
  double correction_ = 1;
  // When the window began.
  uint64_t generation_ = 0;
  double pushes_ = 0;
  double staleness_sum_ = 0;
};

}  // namespace

std::unique_ptr<ModePolicy> MakeStalenessBudgetPolicy(const v1::JobConfig& config) {
  return std::make_unique<StalenessBudgetPolicy>(config);
}

}  // namespace rubato::coordinator
