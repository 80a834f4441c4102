#include "server/rules/chunk_rules.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::server {
namespace {

double LearningRateScale(const v1::Plan& plan) {
  return plan.learning_rate_scale() == 0 ? 1 : plan.learning_rate_scale();
}

}  // namespace

void ChunkRules::EnterPlan(const PlanWindow& window) {
  const v1::Plan& plan = window.current;
  // With a quorum, laggards do not finish the steps that they hold: they are moved, as in SSP.
  bool keep_clocks = window.left_sync() && window.previous->quorum() == 0;
  gate_.EnterPlan(plan, keep_clocks);
  if (!window.left_sync()) next_sync_step_ = plan.first_step();
}

std::optional<ChunkRules::Update> ChunkRules::Amend(const PlanWindow& window) {
  gate_.Amend(window.current);
  reducer_.KeepMembers(window.current);
  const v1::Plan& plan = CollectingPlan(window);
  if (plan.mode() == v1::SYNC && reducer_.Complete(plan)) return CompleteSync(plan);
  return std::nullopt;
}

const v1::Plan& ChunkRules::CollectingPlan(const PlanWindow& window) const {
  if (window.left_sync() && next_sync_step_ < window.current.first_step()) return *window.previous;
  return window.current;
}

const v1::Plan* ChunkRules::PlanOf(const PlanWindow& window, uint64_t generation, int64_t step) {
  if (generation == window.current.generation()) {
    return step >= window.current.first_step() ? &window.current : nullptr;
  }
  if (window.previous.has_value() && generation == window.previous->generation() &&
      step < window.current.first_step()) {
    return &*window.previous;
  }
  return nullptr;
}

absl::Status ChunkRules::CheckPush(const PlanWindow& window, const Contribution& push) {
  if (deduper_.Seen(push.task.index(), push.task.incarnation(), push.step)) return absl::OkStatus();
  const StepGate::Member* member = gate_.Find(push.task);
  const v1::Plan* plan = PlanOf(window, push.generation, push.step);
  std::string what = absl::StrCat("push of step ", push.step, " (generation ", push.generation, ") to chunk ", chunk_);
  if (member == nullptr) return absl::FailedPreconditionError(absl::StrCat(what, ": the sender is not a member"));
  if (plan == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(what, ": the step is not of a plan in force here (generation ",
                                                      window.current.generation(), " from step ",
                                                      window.current.first_step(), ")"));
  }
  if (push.step != member->begun || !member->working) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": the step that the sender has begun here is ", member->working ? member->begun : -1));
  }
  if (plan->mode() == v1::SYNC && push.step > next_sync_step_) {
    return absl::FailedPreconditionError(absl::StrCat(what, ": the next SYNC step here is ", next_sync_step_));
  }
  return absl::OkStatus();
}

ChunkRules::Push ChunkRules::TakePush(const PlanWindow& window, Contribution push) {
  if (deduper_.Seen(push.task.index(), push.task.incarnation(), push.step)) return {PushResult::kDuplicate, {}};
  const v1::Plan& plan = *PlanOf(window, push.generation, push.step);
  if (plan.mode() != v1::SYNC) {
    // A step of the plan before is done for good: its worker goes on with this plan's first step.
    bool drains = plan.generation() != window.current.generation();
    return ApplyNow(plan, std::move(push), drains ? window.current.first_step() : push.step + 1);
  }
  if (push.step < next_sync_step_) {  // Complete without it.
    push.examples = 0;
    Push dropped = ApplyNow(plan, std::move(push), push.step + 1);
    dropped.result = PushResult::kDropped;
    return dropped;
  }
  reducer_.Add(std::move(push));
  if (!reducer_.Complete(plan)) return {PushResult::kPending, {}};
  return {PushResult::kApplied, CompleteSync(plan)};
}

ChunkRules::Push ChunkRules::ApplyNow(const v1::Plan& plan, Contribution push, int64_t clock_after) {
  StepGate::Member& member = *gate_.Find(push.task);
  deduper_.Record(push.task.index(), push.task.incarnation(), push.step);
  member.clock = clock_after;
  member.working = false;
  member.draining = false;
  Update update{chunk_, {}, push.examples == 0, version_, LearningRateScale(plan)};
  if (!update.ineffective) ++version_;
  update.contributions.push_back(std::move(push));
  return {PushResult::kApplied, std::move(update)};
}

std::optional<ChunkRules::Update> ChunkRules::CompleteSync(const v1::Plan& plan) {
  Update update{chunk_, reducer_.Take(), false, version_, LearningRateScale(plan)};
  for (const Contribution& contribution : update.contributions) {
    deduper_.Record(contribution.task.index(), contribution.task.incarnation(), contribution.step);
    StepGate::Member& member = *gate_.Find(contribution.task);
    member.clock = contribution.step + 1;
    member.working = false;
  }
  ++version_;
  ++next_sync_step_;
  return update;
}

absl::StatusOr<ChunkRules::Start> ChunkRules::AskStart(const PlanWindow& window, const v1::TaskId& task,
                                                         uint64_t generation, int64_t step) {
  StepGate::Member* member = gate_.Find(task);
  if (member == nullptr) return absl::FailedPreconditionError("the sender is not a member");
  const v1::Plan& current = window.current;
  // This server has yet to hear of the sender's plan.
  if (generation > current.generation()) return Start{StartResult::kWait, 0, {}, false};
  if (generation < current.generation()) {
    bool finishes_sync = window.left_sync() && generation == window.previous->generation() &&
                         step < current.first_step() && window.previous->quorum() == 0;
    if (!finishes_sync) return Start{StartResult::kMoved, current.first_step(), {}, false};
    if (next_sync_step_ >= step) return Start{StartResult::kOpen, 0, {}, false};
    return Start{StartResult::kWait, 0, reducer_.Missing(*window.previous), false};
  }
  return AskStartUnderCurrent(window, *member, step);
}

// What the wish to begin `step` says about the sender's earlier steps. Returns whether its clock moved.
bool ChunkRules::Resolve(const v1::Plan& plan, StepGate::Member& member, int64_t step) {
  const int64_t clock = member.clock;
  if (member.draining) {  // It has abandoned what it had begun under the plan before.
    member.draining = false;
    member.working = false;
    member.clock = plan.first_step();
  }
  bool may_jump = plan.mode() == v1::SYNC && plan.quorum() > 0;
  if (may_jump && step > member.begun && step > member.clock) {  // A laggard that was moved.
    member.working = false;
    member.clock = step;
  }
  return member.clock != clock;
}

absl::StatusOr<ChunkRules::Start> ChunkRules::AskStartUnderCurrent(const PlanWindow& window, StepGate::Member& member,
                                                                   int64_t step) {
  if (step < window.current.first_step()) {
    return absl::FailedPreconditionError(absl::StrCat("step ", step, " of chunk ", chunk_, ": the sender's plan begins ",
                                                      "with step ", window.current.first_step()));
  }
  bool clock_moved = Resolve(window.current, member, step);
  RUBATO_ASSIGN_OR_RETURN(Start start, StartOf(window, member, step));
  start.clock_moved = clock_moved;
  return start;
}

absl::StatusOr<ChunkRules::Start> ChunkRules::StartOf(const PlanWindow& window, const StepGate::Member& member,
                                                      int64_t step) const {
  if (member.working && member.begun == step) return Start{StartResult::kOpen, 0, {}, false};  // Asked again.
  // A contribution that is still in collection lets the clock follow; until then the step before is not done.
  if (member.working && member.begun == step - 1 && reducer_.Has(member.task)) {
    return Start{StartResult::kWait, 0, reducer_.Missing(CollectingPlan(window)), false};
  }
  if (member.working || step != member.clock) {
    return absl::FailedPreconditionError(absl::StrCat("step ", step, " of chunk ", chunk_, ": the sender's next step is ",
                                                      member.clock, member.working ? ", which it is working on" : ""));
  }
  if (window.announced != 0) return Start{StartResult::kWait, 0, {}, false};
  return GateOf(window, step);
}

ChunkRules::Start ChunkRules::GateOf(const PlanWindow& window, int64_t step) const {
  const v1::Plan& current = window.current;
  // Steps of a SYNC plan before this one are still to be completed.
  if (window.left_sync() && next_sync_step_ < current.first_step()) {
    return {StartResult::kWait, 0, reducer_.Missing(*window.previous), false};
  }
  switch (current.mode()) {
    case v1::SYNC:
      if (next_sync_step_ > step) return {StartResult::kMoved, next_sync_step_, {}, false};  // Complete without the sender.
      if (step == current.first_step()) return OpenWhenReached(step);
      if (next_sync_step_ == step) return {StartResult::kOpen, 0, {}, false};
      return {StartResult::kWait, 0, reducer_.Missing(current), false};
    case v1::SSP:
      return OpenWhenReached(step - current.staleness_bound());
    default:
      return {StartResult::kOpen, 0, {}, false};
  }
}

ChunkRules::Start ChunkRules::OpenWhenReached(int64_t step) const {
  std::vector<v1::TaskId> behind = gate_.Behind(step);
  if (behind.empty()) return Start{StartResult::kOpen, 0, {}, false};
  return Start{StartResult::kWait, 0, std::move(behind), false};
}

void ChunkRules::Begin(const v1::TaskId& task, int64_t step) {
  StepGate::Member& member = *gate_.Find(task);
  member.begun = step;
  member.working = true;
}

}  // namespace rubato::server
