#include "cli/audit/chunk_audit.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/task.h"

namespace rubato {
namespace {

// Steps that a member may be ahead of the slowest: none in SYNC, the bound in SSP; nothing in ASYNC.
std::optional<int64_t> BoundOf(const v1::Plan& plan) {
  if (plan.mode() == v1::SYNC) return 0;
  if (plan.mode() == v1::SSP) return plan.staleness_bound();
  return std::nullopt;
}

std::string ModeOf(const AuditedPlan& plan) { return ModeName(plan.plan.mode(), plan.plan.staleness_bound()); }

}  // namespace

ChunkAudit::ChunkAudit(std::string where, const PlanHistory* plans, int64_t version, AuditReport* report)
    : where_(std::move(where)), plans_(plans), report_(report), first_version_(version), version_(version) {
  if (plans_->previous().has_value()) previous_ = NewEra(*plans_->previous());
  if (plans_->current().has_value()) current_ = NewEra(*plans_->current());
}

ChunkAudit::Era ChunkAudit::NewEra(const AuditedPlan& plan) const {
  return {plan.plan.generation(), MemberClocks(plan.members, plan.plan.first_step(), version_), std::nullopt, 0};
}

ChunkAudit::Era* ChunkAudit::EraOf(uint64_t generation) {
  if (current_.has_value() && current_->generation == generation) return &*current_;
  if (previous_.has_value() && previous_->generation == generation) return &*previous_;
  return nullptr;
}

std::string ChunkAudit::Who(const v1::UpdateRecord& push) const {
  return absl::StrCat(where_, ": step ", push.step(), " of ", TaskName(v1::TaskId::WORKER, push.worker()));
}

void ChunkAudit::OnNewPlan() {
  previous_ = std::move(current_);
  if (previous_.has_value() && plans_->previous().has_value()) {
    previous_->clocks.Keep(plans_->previous()->members, version_);
  }
  current_ = NewEra(*plans_->current());
}

void ChunkAudit::OnAmendment() {
  if (previous_.has_value() && plans_->previous().has_value()) {
    previous_->clocks.Keep(plans_->previous()->members, version_);
  }
  current_->clocks.Keep(plans_->current()->members, version_);
}

void ChunkAudit::OnPush(const v1::UpdateRecord& push, size_t member) {
  const AuditedPlan* plan = plans_->Find(push.generation());
  Era* era = EraOf(push.generation());
  if (member >= members_.size()) members_.resize(member + 1, {.applied_version = first_version_});
  if (plan == nullptr || era == nullptr) {
    report_->Break(Invariant::kPlans, [&] {
      return absl::StrCat(Who(push), " was applied under plan ", push.generation(), ", which is not in force");
    });
    CloseUpdate();
    return CheckVersion(push);
  }
  CheckMember(push, *plan, member);
  if (push.generation() > newest_generation_) CheckLeftSync(push);
  const bool forward = CheckOrder(push, *plan, members_[member]);
  if (!Continues(push)) CloseUpdate();
  // Steps that were left out are done for everybody.
  if (MayBeShort(*plan) && !push.ineffective() && push.step() > NextSyncStep(*plan)) {
    era->clocks.AdvanceAll(push.step(), version_);
  }
  CheckStaleness(push, *plan, members_[member], *era);
  if (plan->plan.mode() != v1::SYNC) {
    CheckVersion(push);
  } else if (push.ineffective()) {
    Drop(push, *plan);
  } else {
    Collect(push, *plan, member, forward);
  }
  if (!forward) return;
  NoteStep(push, members_[member]);
  era->clocks.Advance(member, push.step() + 1, version_);
  if (era != &*current_) NoteDrained(push, member);
  ForgetPast(*era);
}

void ChunkAudit::CheckMember(const v1::UpdateRecord& push, const AuditedPlan& plan, size_t member) {
  if (plan.HasMember(member)) return;
  report_->Break(plan.plan.mode() == v1::SYNC ? Invariant::kSync : Invariant::kPlans, [&] {
    return absl::StrCat(Who(push), " (incarnation ", absl::Hex(push.incarnation()), ") was applied under plan ",
                        push.generation(), ", of which it is no member");
  });
}

bool ChunkAudit::CheckOrder(const v1::UpdateRecord& push, const AuditedPlan& plan, const Member& member) {
  report_->Check(Invariant::kOnce);
  report_->Check(Invariant::kPlans);
  const int64_t step = push.step();
  if (member.generation != 0 && step <= member.last_step) {
    const bool done = step >= member.run_start || (step >= member.earlier_start && step <= member.earlier_end);
    report_->Break(done ? Invariant::kOnce : Invariant::kPlans, [&] {
      return absl::StrCat(Who(push), " was applied ", done ? "twice, the second time as version " : "as version ",
                          push.applied_version(), done ? "" : absl::StrCat(", after its step ", member.last_step));
    });
    return false;
  }
  if (step < plan.plan.first_step() || step >= plan.end_step) {
    report_->Break(Invariant::kPlans, [&] {
      return absl::StrCat(
          Who(push), " was applied under plan ", push.generation(), ", which has steps ", plan.plan.first_step(),
          " to ", plan.end_step == std::numeric_limits<int64_t>::max() ? "its end" : absl::StrCat(plan.end_step - 1));
    });
    return true;
  }
  const bool same_plan = push.generation() == member.generation;
  const int64_t expected = same_plan ? member.last_step + 1 : plan.plan.first_step();
  // With a quorum, those who come late skip what was complete without them.
  const bool may_skip = plan.plan.mode() == v1::SYNC && plan.plan.quorum() > 0;
  if (push.generation() < member.generation || (step != expected && !may_skip)) {
    report_->Break(Invariant::kPlans, [&] {
      return absl::StrCat(Who(push), " under plan ", push.generation(), " came where step ", expected,
                          " was its next; its last was step ", member.last_step, " under plan ", member.generation);
    });
  }
  return true;
}

// The first push under a plan has come. If the plan before was SYNC, its last step is complete by now.
void ChunkAudit::CheckLeftSync(const v1::UpdateRecord& push) {
  newest_generation_ = push.generation();
  const std::optional<AuditedPlan>& before = plans_->previous();
  if (!before.has_value() || before->plan.generation() >= push.generation()) return;
  if (!before->waits_for_all() || before->member_count == 0) return;
  const int64_t next = NextSyncStep(*before);
  if (next >= before->end_step) return;
  report_->Break(Invariant::kSync, [&] {
    return absl::StrCat(where_, ": no update for SYNC step ", next, " of plan ", before->plan.generation(),
                        " before step ", push.step(), " of plan ", push.generation());
  });
}

void ChunkAudit::CheckStaleness(const v1::UpdateRecord& push, const AuditedPlan& plan, const Member& member, Era& era) {
  const int64_t base = push.base_version();
  const int64_t before = Continues(push) ? update_->version - 1 : version_;
  const int64_t slowest = era.clocks.SlowestAt(base);
  if (!push.ineffective()) {
    StalenessReport& staleness = *plan.staleness;
    ++staleness.pushes;
    staleness.version_staleness_max = std::max(staleness.version_staleness_max, before - base);
    if (slowest != MemberClocks::kNobody) {
      staleness.clock_staleness_max = std::max(staleness.clock_staleness_max, push.step() - slowest);
    }
  }
  const std::optional<int64_t> bound = BoundOf(plan.plan);
  if (!bound.has_value()) return;
  report_->Check(Invariant::kStaleness);
  if (base < 0 || base > before || base < member.applied_version) {
    report_->Break(Invariant::kStaleness, [&] {
      return absl::StrCat(Who(push), " was computed from version ", base, "; versions ", member.applied_version,
                          " (its last step's) to ", before, " (the last before it) were possible");
    });
    return;
  }
  const int64_t need = push.step() - *bound;
  if (slowest < need) {
    report_->Break(Invariant::kStaleness, [&] {
      return absl::StrCat(Who(push), " under ", ModeOf(plan), " was computed from version ", base,
                          ", when the slowest member's clock was ", slowest, "; at least ", need, " was needed");
    });
  }
  if (!era.deepest.has_value() || need > era.deepest_need) {
    era.deepest = push;
    era.deepest_need = need;
  }
}

void ChunkAudit::CheckVersion(const v1::UpdateRecord& push) {
  const int64_t expected = push.ineffective() ? version_ : version_ + 1;
  if (push.applied_version() != expected) {
    report_->Break(Invariant::kOnce, [&] {
      return absl::StrCat(Who(push), push.ineffective() ? ", which changed nothing," : "", " has version ",
                          push.applied_version(), " after version ", version_, "; ", expected, " was next");
    });
  }
  version_ = std::max(version_, push.applied_version());
}

bool ChunkAudit::Continues(const v1::UpdateRecord& push) const {
  return update_.has_value() && !push.ineffective() && update_->generation == push.generation() &&
         update_->step == push.step() && update_->version == push.applied_version();
}

void ChunkAudit::Drop(const v1::UpdateRecord& push, const AuditedPlan& plan) {
  CheckVersion(push);
  const bool complete =
      push.generation() < sync_generation_ || (push.generation() == sync_generation_ && push.step() <= sync_step_);
  if (plan.plan.quorum() > 0 && complete) return;
  report_->Break(Invariant::kSync, [&] {
    return absl::StrCat(Who(push), " was dropped, ",
                        complete ? "although the plan waits for all members" : "although its step was not complete");
  });
}

void ChunkAudit::Collect(const v1::UpdateRecord& push, const AuditedPlan& plan, size_t member, bool forward) {
  if (!update_.has_value()) OpenUpdate(push, plan);
  std::vector<size_t>& contributors = update_->contributors;
  if (!forward && std::find(contributors.begin(), contributors.end(), member) != contributors.end()) {
    report_->Break(Invariant::kSync, [&] { return absl::StrCat(Who(push), " was counted twice in one update"); });
    return;
  }
  contributors.push_back(member);
}

void ChunkAudit::OpenUpdate(const v1::UpdateRecord& push, const AuditedPlan& plan) {
  const int64_t expected = NextSyncStep(plan);
  if (sync_generation_ == push.generation() && push.step() == sync_step_) {
    report_->Break(Invariant::kSync, [&] {
      return absl::StrCat(where_, ": two updates for SYNC step ", sync_step_, ": versions ", sync_version_, " and ",
                          push.applied_version());
    });
  } else if (push.step() < expected || (push.step() > expected && !MayBeShort(plan))) {
    report_->Break(Invariant::kSync, [&] {
      return absl::StrCat(where_, ": an update for SYNC step ", push.step(), " where step ", expected, " was next");
    });
  }
  CheckVersion(push);
  update_ = Update{push.generation(), push.step(), push.applied_version(), {}};
  sync_generation_ = push.generation();
  sync_step_ = push.step();
  sync_version_ = push.applied_version();
  // With a quorum, the step is done for those as well whom it did not wait for.
  if (plan.plan.quorum() > 0) EraOf(push.generation())->clocks.AdvanceAll(push.step() + 1, version_);
}

int64_t ChunkAudit::NextSyncStep(const AuditedPlan& plan) const {
  return sync_generation_ == plan.plan.generation() ? sync_step_ + 1 : plan.plan.first_step();
}

bool ChunkAudit::MayBeShort(const AuditedPlan& plan) const {
  return plan.plan.quorum() > 0 && (plan.plan.amendment() > 0 || plans_->Find(current_->generation) != &plan);
}

void ChunkAudit::CloseUpdate() {
  if (!update_.has_value()) return;
  const Update update = *std::exchange(update_, std::nullopt);
  const AuditedPlan* plan = plans_->Find(update.generation);
  if (plan == nullptr) return;
  report_->Check(Invariant::kSync);
  const int64_t quorum = plan->plan.quorum();
  const int64_t wanted = quorum == 0 ? plan->member_count : std::min(quorum, plan->member_count);
  const auto counted = std::count_if(update.contributors.begin(), update.contributors.end(),
                                     [&](size_t member) { return plan->HasMember(member); });
  if (counted >= wanted || (counted > 0 && MayBeShort(*plan))) return;
  report_->Break(Invariant::kSync, [&] {
    std::string missing;
    for (size_t i = 0; i < plan->members.size(); ++i) {
      const bool there =
          std::find(update.contributors.begin(), update.contributors.end(), i) != update.contributors.end();
      if (plan->members[i] && !there) {
        absl::StrAppend(&missing, missing.empty() ? "" : ", ", TaskName(v1::TaskId::WORKER, plans_->WorkerOf(i)));
      }
    }
    return absl::StrCat(where_, ": the update for SYNC step ", update.step, " (version ", update.version, ") has ",
                        counted, " of ", wanted, " contributions; missing: ", missing);
  });
}

void ChunkAudit::NoteStep(const v1::UpdateRecord& push, Member& member) {
  if (push.generation() != member.generation) {
    member.earlier_start = member.run_start;
    member.earlier_end = member.generation == 0 ? -1 : member.last_step;
    member.run_start = push.step();
    member.generation = push.generation();
  }
  member.last_step = push.step();
  member.applied_version = version_;
}

// A member has finished a step of the plan before. Until now its clock under the current plan was one short of the
// plan's first step, so nothing that needed more may have begun.
void ChunkAudit::NoteDrained(const v1::UpdateRecord& push, size_t member) {
  if (!current_->clocks.Has(member)) return;
  const int64_t first_step = plans_->current()->plan.first_step();
  if (current_->deepest.has_value() && current_->deepest_need >= first_step) {
    report_->Break(Invariant::kStaleness, [&] {
      return absl::StrCat(Who(*current_->deepest), " under plan ", current_->generation, " began while step ",
                          push.step(), " of ", TaskName(v1::TaskId::WORKER, push.worker()), " under plan ",
                          push.generation(), " was still to come");
    });
  }
  current_->clocks.CapBefore(version_, first_step - 1);
}

void ChunkAudit::ForgetPast(Era& era) {
  if (era.clocks.remembered() < forget_at_) return;
  // Weights are handed out after a member's last push, so nobody will refer to what was before all of these.
  int64_t oldest = version_;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (era.clocks.Has(i)) oldest = std::min(oldest, members_[i].applied_version);
  }
  era.clocks.Forget(oldest);
  forget_at_ = 2 * era.clocks.remembered() + 64;
}

}  // namespace rubato
