#include "coordinator/rules/plan_keeper.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/task.h"
#include "coordinator/record/run_record.h"
#include "coordinator/rules/journal_records.h"

namespace rubato::coordinator {

void PlanKeeper::Apply(const PlanMaker::Actions& actions, absl::Time now) {
  for (const PlanAction& action : actions) {
    v1::Directive directive;
    switch (action.kind) {
      case PlanAction::Kind::kJournalAnnounce:
        if (action.change.policy_memory) policy_memory_ = *action.change.policy_memory;
        // Forgotten, it would leave servers holding steps for a change that nobody makes.
        out_->Journal(AnnounceRecord(action.generation, action.change, policy_memory_), true);
        continue;
      case PlanAction::Kind::kJournalPlan:
        JournalPlan(action);
        continue;
      case PlanAction::Kind::kAnnounce:
        directive.mutable_announce()->set_generation(action.generation);
        break;
      case PlanAction::Kind::kCommit:
        *directive.mutable_commit()->mutable_plan() = action.plan;
        break;
      case PlanAction::Kind::kAbort:
        directive.mutable_abort()->set_generation(action.generation);
        break;
      case PlanAction::Kind::kCommitted:
        OnCommitted(action, now);
        continue;
      case PlanAction::Kind::kAmended:
        job_->held_plan = action.plan;
        out_->Log('I', absl::StrCat("plan ", action.plan.generation(), " goes on with ", action.plan.members_size(),
                                    " workers"));
        TellWorkers();
        continue;
      case PlanAction::Kind::kDropped:
        OnDropped(action.change);
        continue;
    }
    const Member* server = job_->membership.Find(v1::TaskId::SERVER, action.server);
    if (server != nullptr) out_->Send(server->id, std::move(directive));
  }
}

void PlanKeeper::JournalPlan(const PlanAction& action) {
  v1::JournalRecord record;
  *record.mutable_plan()->mutable_plan() = action.plan;
  record.mutable_plan()->set_members_decided(static_cast<uint32_t>(action.members_decided));
  record.mutable_plan()->set_requested_quorum(action.change.quorum);
  if (action.plan.amendment() == 0) record.mutable_plan()->set_policy_memory(policy_memory_);
  out_->Journal(std::move(record), !RUBATO_MUTANT(kPlanNotDurable));
}

void PlanKeeper::OnCommitted(const PlanAction& action, absl::Time now) {
  const v1::Plan& plan = action.plan;
  const v1::Plan before = std::exchange(job_->held_plan, plan);
  if (action.change.only_cut) {  // Nothing that somebody would look for among the changes of plans.
    WriteLine(watch_.Flush(job_->membership), now);
    recorded_generation_ = std::max(recorded_generation_, plan.generation());
    return TellWorkers();
  }
  job_->counts.set_plans_total(job_->counts.plans_total() + 1);
  if (before.generation() != 0 &&
      (before.mode() != plan.mode() || before.staleness_bound() != plan.staleness_bound())) {
    job_->counts.set_mode_changes_total(job_->counts.mode_changes_total() + 1);
  }
  out_->Log('I',
            absl::StrCat("plan ", plan.generation(), ": ", ModeName(plan.mode(), plan.staleness_bound()), " from step ",
                         plan.first_step(), ", ", plan.members_size(), " members (", action.change.reason, ")"));
  if (plan.generation() > recorded_generation_) {
    recorded_generation_ = plan.generation();
    WriteLine(watch_.OnCommitted(plan, action.change.reason, action.round_trip, job_->membership, now), now);
  }
  if (action.change.ticket != 0) {
    v1::SwitchModeReply reply;
    *reply.mutable_plan() = plan;
    reply.set_seconds(absl::ToDoubleSeconds(action.round_trip));
    out_->Add(AnswerSwitch{action.change.ticket, std::move(reply)});
  }
  TellWorkers();
}

void PlanKeeper::OnDropped(const PlanChange& change) {
  if (change.ticket != 0) {
    out_->Add(AnswerSwitch{
        change.ticket, absl::AbortedError("the switch was dropped: another request took its place, or the job ended")});
  }
  if (!change.policy_memory) return;
  policy_memory_ = *change.policy_memory;
  v1::JournalRecord record;
  record.set_policy_memory(policy_memory_);
  out_->Journal(std::move(record), false);
  out_->Log('W', absl::StrCat("the switch \"", change.reason, "\" gave way to a later request"));
}

void PlanKeeper::AbortSwitches(const std::string& why) {
  if (!job_->plan_maker) return;
  for (const uint64_t ticket : job_->plan_maker->TakeTickets()) {
    out_->Add(AnswerSwitch{ticket, absl::AbortedError(absl::StrCat("the switch was dropped: ", why))});
  }
}

void PlanKeeper::Watch(absl::Time now) { WriteLine(watch_.Check(job_->held_plan, job_->membership, now), now); }

void PlanKeeper::Flush(absl::Time now) { WriteLine(watch_.Flush(job_->membership), now); }

void PlanKeeper::Restore(const std::string& policy_memory, uint64_t recorded_generation) {
  policy_memory_ = policy_memory;
  recorded_generation_ = recorded_generation;
}

void PlanKeeper::WriteLine(const std::optional<PlanWatch::Report>& report, absl::Time now) {
  if (!report) return;
  job_->counts.set_stall_seconds_total(job_->counts.stall_seconds_total() + report->times.stall_seconds);
  out_->Metrics(PlanLine(job_->Seconds(now), report->plan, report->reason, report->times));
}

void PlanKeeper::TellWorkers() {
  if (!job_->training_began) return;
  v1::Directive directive;
  *directive.mutable_commit()->mutable_plan() = job_->held_plan;
  out_->SendToAll(v1::TaskId::WORKER, directive);
  out_->SendToAll(v1::TaskId::EVALUATOR, directive);
}

}  // namespace rubato::coordinator
