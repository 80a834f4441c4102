#include "server/rules/chunk_rules.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/proto_enum.h"
#include "common/status.h"
#include "common/task.h"

namespace rubato::server {

void ChunkRules::Restore(int64_t version) {
  if (RUBATO_MUTANT(kRestoreForgetsVersion)) version = 0;
  version_ = version;
}

void ChunkRules::EnterPlan(const PlanWindow& window) {
  const v1::Plan& plan = window.current();
  // With a quorum, laggards do not finish the steps that they hold: they are moved, as in SSP.
  bool keep_clocks = window.left_sync() && window.previous()->quorum() == 0;
  gate_.EnterPlan(window.members(), plan.first_step(), keep_clocks);
  if (!window.left_sync()) next_sync_step_ = plan.first_step();
  SetContributors(window);
}

void ChunkRules::SetContributors(const PlanWindow& window) {
  const bool collects = CollectingPlan(window).mode() == v1::SYNC;
  reducer_.SetMembers(collects ? window.members() : std::make_shared<const MemberList>());
}

std::optional<ChunkRules::Update> ChunkRules::Amend(const PlanWindow& window) {
  gate_.Amend(window.members());
  SetContributors(window);
  if (RUBATO_MUTANT(kAmendmentClosesNothing)) return std::nullopt;
  return CloseStep(window);
}

bool ChunkRules::FinishesSync(const PlanWindow& window) const {
  return window.left_sync() && next_sync_step_ < window.current().first_step();
}

const v1::Plan& ChunkRules::CollectingPlan(const PlanWindow& window) const {
  return FinishesSync(window) ? *window.previous() : window.current();
}

bool ChunkRules::IsAwaited(const PlanWindow& window, size_t slot) const {
  const MemberList::Member& worker = gate_.list()[slot];
  const StepGate::Member& member = gate_.member(slot);
  if (reducer_.Has(worker.index, worker.incarnation)) return false;
  // Under a quorum, whoever has left the plan has one push to come, and who was moved past the step has none. Who is
  // new in a plan has a clock past the steps of the one before.
  const bool leaves = member.draining && FinishesSync(window);
  const bool has_begun = leaves || RUBATO_MUTANT(kBarrierForgetsSlow);
  return has_begun ? member.begun == next_sync_step_ : gate_.clock(slot) <= next_sync_step_;
}

bool ChunkRules::IsAnybodyAwaited(const PlanWindow& window) const {
  const size_t members = gate_.list().size();
  for (size_t looks = 0; looks < members; ++looks) {
    if (awaited_ >= members) awaited_ = 0;
    if (IsAwaited(window, awaited_)) return true;
    ++awaited_;
  }
  return false;
}

std::vector<v1::TaskId> ChunkRules::Awaited(const PlanWindow& window, size_t most) const {
  std::vector<v1::TaskId> awaited;
  for (size_t slot = 0; slot < gate_.list().size() && awaited.size() < most; ++slot) {
    if (IsAwaited(window, slot)) awaited.push_back(gate_.list().TaskOf(slot));
  }
  return awaited;
}

std::vector<v1::TaskId> ChunkRules::WaitingFor(const PlanWindow& window, const Start& start, size_t most) const {
  switch (start.wait) {
    case Wait::kCoordinator:
      return {};
    case Wait::kContributions:
      return Awaited(window, most);
    case Wait::kClocks:
      return gate_.Behind(start.clock, most);
  }
  return {};
}

bool ChunkRules::IsPlanReached(const PlanWindow& window) const {
  if (RUBATO_MUTANT(kCutIgnoresMembers)) return !FinishesSync(window);
  return !FinishesSync(window) && gate_.IsReached(window.current().first_step());
}

std::vector<v1::TaskId> ChunkRules::AwaitedByPlan(const PlanWindow& window, size_t most) const {
  return FinishesSync(window) ? Awaited(window, most) : gate_.Behind(window.current().first_step(), most);
}

std::optional<ChunkRules::Update> ChunkRules::CloseStep(const PlanWindow& window) {
  if (CollectingPlan(window).mode() != v1::SYNC) return std::nullopt;
  std::optional<Update> update;
  const bool quorum = RUBATO_MUTANT(kQuorumOfOne) && CollectingPlan(window).quorum() > 0;
  if (!reducer_.empty() && (quorum || reducer_.HasQuorum(CollectingPlan(window)) || !IsAnybodyAwaited(window))) {
    update = CompleteSync(window, CollectingPlan(window));
  }
  if (!reducer_.empty()) return update;
  if (FinishesSync(window) && !IsAnybodyAwaited(window)) next_sync_step_ = window.current().first_step();
  // Everybody was moved past these steps; who had begun them is lost.
  if (!FinishesSync(window)) next_sync_step_ = std::max(next_sync_step_, gate_.LowestClock());
  return update;
}

absl::Status ChunkRules::CheckPush(const PlanWindow& window, const Contribution& contribution) {
  const PushHeader& push = *contribution.header;
  if (deduper_.Seen(push.task.index(), push.task.incarnation(), push.step)) return absl::OkStatus();
  const StepGate::Member* member = gate_.Find(push.task);
  const v1::Plan* plan = window.PlanOf(push.generation, push.step);
  const auto refused = [&](const auto&... reason) {
    return absl::FailedPreconditionError(absl::StrCat("push of step ", push.step, " (generation ", push.generation,
                                                      ") to chunk ", chunk_, ": ", reason...));
  };
  if (member == nullptr) return refused("the sender is not a member");
  if (plan == nullptr) {
    return refused("the step is not of a plan in force here (generation ", window.current().generation(), " from step ",
                   window.current().first_step(), ")");
  }
  if (push.step != member->begun || !member->working) {
    return refused("the step that the sender has begun here is ", member->working ? member->begun : -1);
  }
  if (plan->mode() == v1::SYNC && push.step > next_sync_step_) {
    return refused("the next SYNC step here is ", next_sync_step_);
  }
  return absl::OkStatus();
}

ChunkRules::Push ChunkRules::TakePush(const PlanWindow& window, Contribution push) {
  const PushHeader& header = *push.header;
  if (deduper_.Seen(header.task.index(), header.task.incarnation(), header.step)) return {PushResult::kDuplicate, {}};
  const v1::Plan& plan = *window.PlanOf(header.generation, header.step);
  if (plan.mode() != v1::SYNC) {
    const bool too_stale = push.examples > 0 && version_ - push.base_version >= staleness_limit_;
    return too_stale ? Drop(window, plan, std::move(push)) : ApplyNow(window, plan, std::move(push));
  }
  if (header.step < next_sync_step_ && !RUBATO_MUTANT(kLatePushCounts)) {  // Complete without it.
    return Drop(window, plan, std::move(push));
  }
  reducer_.Add(std::move(push));
  std::optional<Update> update = CloseStep(window);
  return {update.has_value() ? PushResult::kApplied : PushResult::kPending, std::move(update)};
}

void ChunkRules::Advance(const PlanWindow& window, const PushHeader& push) {
  StepGate::Member& member = *gate_.Find(push.task);
  // A step of the plan before is done for good: its worker goes on with this plan's first step.
  gate_.SetClock(push.task,
                 member.draining ? window.current().first_step() : std::max(gate_.clock(push.task), push.step + 1));
  member.working = false;
  member.draining = false;
}

ChunkRules::Push ChunkRules::Drop(const PlanWindow& window, const v1::Plan& plan, Contribution push) {
  push.examples = 0;
  Push dropped = ApplyNow(window, plan, std::move(push));
  dropped.result = PushResult::kDropped;
  return dropped;
}

ChunkRules::Push ChunkRules::ApplyNow(const PlanWindow& window, const v1::Plan& plan, Contribution push) {
  const PushHeader& header = *push.header;
  deduper_.Record(header.task.index(), header.task.incarnation(), header.step, version_);
  Advance(window, header);
  Update update{chunk_, {}, push.examples == 0, version_, LearningRateScale(plan), plan.mode() != v1::SYNC};
  update.momentum = MomentumOf(plan);
  if (!update.ineffective) ++version_;
  update.contributions.push_back(std::move(push));
  return {PushResult::kApplied, std::move(update)};
}

ChunkRules::Update ChunkRules::CompleteSync(const PlanWindow& window, const v1::Plan& plan) {
  Update update{chunk_, reducer_.Take(), false, version_, LearningRateScale(plan)};
  update.momentum = MomentumOf(plan);
  for (Contribution& contribution : update.contributions) {
    if (RUBATO_MUTANT(kMeanUnweighted)) contribution.examples = 1;
    const PushHeader& push = *contribution.header;
    if (!RUBATO_MUTANT(kSyncNotRemembered)) {
      deduper_.Record(push.task.index(), push.task.incarnation(), push.step, version_);
    }
    Advance(window, push);
  }
  ++version_;
  ++next_sync_step_;
  return update;
}

std::optional<ChunkRules::Update> ChunkRules::NoteStartRequest(const PlanWindow& window, const v1::TaskId& task,
                                                               uint64_t generation, int64_t step) {
  StepGate::Member* member = gate_.Find(task);
  const v1::Plan& plan = window.current();
  if (member == nullptr || generation != plan.generation() || step < plan.first_step()) return std::nullopt;
  const int64_t clock = gate_.clock(task);
  if (member->draining) {  // It has abandoned what it had begun under the plan before.
    member->draining = false;
    member->working = false;
    gate_.SetClock(task, plan.first_step());
  }
  const bool may_jump = plan.mode() == v1::SYNC && plan.quorum() > 0 && !reducer_.Has(task);
  if (may_jump && step > member->begun && step > gate_.clock(task)) {  // A laggard that was moved.
    member->working = false;
    gate_.SetClock(task, step);
  }
  return gate_.clock(task) == clock ? std::nullopt : CloseStep(window);
}

absl::StatusOr<ChunkRules::Start> ChunkRules::AskStart(const PlanWindow& window, const v1::TaskId& task,
                                                       uint64_t generation, int64_t step) const {
  const StepGate::Member* member = gate_.Find(task);
  if (member == nullptr) return absl::FailedPreconditionError("the sender is not a member");
  const v1::Plan& current = window.current();
  // This server has yet to hear of the sender's plan.
  if (generation > current.generation()) return Start{StartResult::kWait};
  if (generation < current.generation()) {
    const bool finishes_sync = window.left_sync() && generation == window.previous()->generation() &&
                               step < current.first_step() && window.previous()->quorum() == 0;
    if (!finishes_sync) return Start{StartResult::kMoved, current.first_step()};
    return StartOf(window, task, *member, /*under_previous=*/true, step);
  }
  if (step < current.first_step()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", step, " of chunk ", chunk_, ": the sender's plan begins ", "with step ", current.first_step()));
  }
  return StartOf(window, task, *member, /*under_previous=*/false, step);
}

absl::StatusOr<ChunkRules::Start> ChunkRules::StartOf(const PlanWindow& window, const v1::TaskId& task,
                                                      const StepGate::Member& member, bool under_previous,
                                                      int64_t step) const {
  if (member.working && member.begun == step) return Start{StartResult::kOpen};  // Asked again.
  // A contribution that is still in collection lets the clock follow; until then the step before is not done.
  if (member.working && member.begun == step - 1 && reducer_.Has(task)) {
    return Start{.result = StartResult::kWait, .wait = Wait::kContributions};
  }
  if (member.working || step != gate_.clock(task)) {
    return absl::FailedPreconditionError(absl::StrCat("step ", step, " of chunk ", chunk_,
                                                      ": the sender's next step is ", gate_.clock(task),
                                                      member.working ? ", which it is working on" : ""));
  }
  if (under_previous) {
    // The change that is announced, if one is, comes after the present one, which nobody who is here has entered.
    if (next_sync_step_ >= step) return Start{StartResult::kOpen};
    return Start{.result = StartResult::kWait, .wait = Wait::kContributions};
  }
  if (window.announced() != 0 && !RUBATO_MUTANT(kAnnouncedNotHeld)) return Start{StartResult::kWait};
  return GateOf(window, step);
}

ChunkRules::Start ChunkRules::GateOf(const PlanWindow& window, int64_t step) const {
  const v1::Plan& current = window.current();
  constexpr Start kStep = {.result = StartResult::kWait, .wait = Wait::kContributions};
  // Steps of a SYNC plan before this one are still to be completed.
  if (FinishesSync(window) && !RUBATO_MUTANT(kSyncLeftUnfinished)) return kStep;
  switch (current.mode()) {
    case v1::SYNC:
      if (next_sync_step_ > step) return {StartResult::kMoved, next_sync_step_};  // Complete without the sender.
      if (step == current.first_step() && !RUBATO_MUTANT(kFirstStepNotHeld)) return OpenWhenReached(step);
      return next_sync_step_ == step ? Start{StartResult::kOpen} : kStep;
    case v1::SSP:
      return OpenWhenReached(step - current.staleness_bound());
    case v1::ASYNC:
      return {StartResult::kOpen};
    case v1::MODE_UNSPECIFIED:
      RUBATO_NO_VALUE_OF(v1::Mode) : break;
  }
  // Of a newer coordinator: nothing begins under rules that are not known here.
  return {StartResult::kWait};
}

bool ChunkRules::StartsWith(const PlanWindow& window, int64_t step) const {
  if (next_sync_step_ != step) return false;
  // Pushes of the plan before may still change what the first step starts with.
  return step != window.current().first_step() || gate_.IsReached(step);
}

ChunkRules::Start ChunkRules::OpenWhenReached(int64_t step) const {
  if (gate_.IsReached(step)) return {StartResult::kOpen};
  return {.result = StartResult::kWait, .wait = Wait::kClocks, .clock = step};
}

void ChunkRules::Begin(const v1::TaskId& task, int64_t step) {
  StepGate::Member& member = *gate_.Find(task);
  member.begun = step;
  member.working = true;
}

void ChunkRules::AppendState(std::string* state) const {
  absl::StrAppend(state, "chunk ", chunk_, ",", version_, ",", next_sync_step_, ";");
  gate_.AppendState(state);
  deduper_.AppendState(state);
  reducer_.AppendState(state);
}

}  // namespace rubato::server
