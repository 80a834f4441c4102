// Stays in SSP and chooses the bound between two limits: the lowest with which the members' latest steps, replayed,
// train as fast as with any other. After Zhao, Zhou, Xu and Wu 2019, "Dynamic stale synchronous parallel distributed
// training for deep learning" (DSSP), where the server lends the fastest worker as many steps as make its predicted
// wait shortest; here all members have the same bound, since it is the plan's, and a change takes the confirmation of
// several windows.
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "coordinator/rules/policies/measured_steps.h"
#include "coordinator/rules/policies/parts/guarded_changes.h"
#include "coordinator/rules/policies/parts/ssp_replay.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/policies/policy_change.h"

namespace rubato::coordinator {
namespace {

// Bounds whose replays differ by less are as good as each other.
constexpr double kAsGood = 0.98;
// More bounds than this are not all tried.
constexpr int64_t kTried = 16;

class DsspPolicy final : public ModePolicy {
 public:
  explicit DsspPolicy(const v1::JobConfig& config)
      : config_(config),
        policy_(config.consistency().dssp()),
        changes_(config.consistency().policy_pace(), "DSSP"),
        history_(config.consistency().policy_pace().windows_agreeing()) {}

  std::optional<PlanChange> Decide(const JobSnapshot& job) override {
    if (changes_.given_up() || job.plan.mode() != v1::SSP) return std::nullopt;
    if (!changes_.WindowEnds(job.step, job.seconds, job.plan.generation())) return std::nullopt;
    if (changes_.GivesUp(job.training_loss)) return GiveUp(job);
    const std::optional<WorkToReplay> window = MeasureWork(job);
    if (!window.has_value()) return std::nullopt;
    const WorkToReplay work = history_.Add(job.plan.generation(), *window);
    const double now = Rate(work, work.bound);
    const Choice best = Best(work);
    const bool up = best.bound > work.bound && best.rate >= (1 + policy_.gain_min()) * now;
    // A lower one that loses nothing is better for what is learned.
    const bool down = best.bound < work.bound && best.rate >= kAsGood * now;
    if (!changes_.Confirms(up ? 1 : down ? -1 : 0)) return std::nullopt;
    return Change(
        job, best.bound,
        absl::StrFormat("dssp: with a bound of %d in the place of %d the workers make %.3g steps/s instead of "
                        "%.3g",
                        best.bound, work.bound, best.rate, now));
  }

  std::string Memory() const override { return changes_.Memory(); }
  absl::Status Restore(absl::string_view memory) override { return changes_.Restore(memory); }

 private:
  struct Choice {
    int64_t bound = 0;
    double rate = 0;
  };

  static double Rate(const WorkToReplay& work, int64_t bound) {
    return SspStepsPerSecond(work.seconds, work.overhead, bound);
  }

  // The lowest of those that are as good as the best.
  Choice Best(const WorkToReplay& work) const {
    const int64_t step = (policy_.bound_max() - policy_.bound_min()) / kTried + 1;
    Choice best;
    for (int64_t bound = policy_.bound_min(); bound <= policy_.bound_max(); bound += step) {
      const double rate = Rate(work, bound);
      if (best.bound == 0 || kAsGood * rate > best.rate) best = {.bound = bound, .rate = rate};
    }
    return best;
  }

  std::optional<PlanChange> GiveUp(const JobSnapshot& job) {
    return Change(job, config_.consistency().staleness_bound(),
                  "dssp: the loss has risen since the last change, so the job goes back to the bound of its config");
  }

  PlanChange Change(const JobSnapshot& job, int64_t bound, std::string reason) const {
    PlanChange change = PolicyChange(config_, v1::SSP, bound, 0, std::move(reason));
    change.learning_rate_scale = job.plan.learning_rate_scale();
    return change;
  }

  const v1::JobConfig config_;
  const v1::DsspPolicy policy_;
  GuardedChanges changes_;
  WorkHistory history_;
};

}  // namespace

std::unique_ptr<ModePolicy> MakeDsspPolicy(const v1::JobConfig& config) { return std::make_unique<DsspPolicy>(config); }

}  // namespace rubato::coordinator
