// CoordinatorCore: what follows from the plan maker's actions.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/task.h"
#include "coordinator/record/run_record.h"
#include "coordinator/rules/coordinator_core.h"

namespace rubato::coordinator {

void CoordinatorCore::Apply(const PlanMaker::Actions& actions, absl::Time now) {
  for (const PlanAction& action : actions) {
    v1::Directive directive;
    switch (action.kind) {
      case PlanAction::Kind::kJournalAnnounce:
        JournalChange(action.generation, action.change);
        continue;
      case PlanAction::Kind::kJournalPlan: {
        v1::JournalRecord record;
        *record.mutable_plan()->mutable_plan() = action.plan;
        record.mutable_plan()->set_members_decided(static_cast<uint32_t>(action.members_decided));
        if (action.plan.amendment() == 0) record.mutable_plan()->set_scheduled(action.change.scheduled);
        Journal(std::move(record), true);
        continue;
      }
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
        held_plan_ = action.plan;
        TellPlan();
        continue;
      case PlanAction::Kind::kDropped:
        if (action.change.ticket != 0) {
          actions_.push_back(AnswerSwitch{
              action.change.ticket,
              absl::AbortedError("the switch was dropped: another request took its place, or the job ended")});
        }
        if (action.change.scheduled != 0) {
          v1::JournalRecord record;
          record.set_switch_dropped(action.change.scheduled);
          Journal(std::move(record), false);
          Log('W', absl::StrCat("the switch \"", action.change.reason, "\" gave way to a later request"));
        }
        continue;
    }
    const Member* server = membership_.Find(v1::TaskId::SERVER, action.server);
    if (server != nullptr) Send(server->id, std::move(directive));
  }
}

void CoordinatorCore::JournalChange(uint64_t generation, const PlanChange& change) {
  v1::JournalRecord record;
  v1::JournalAnnounce* announce = record.mutable_announce();
  announce->set_generation(generation);
  announce->set_mode(change.mode);
  announce->set_staleness_bound(change.staleness_bound);
  announce->set_quorum(change.quorum);
  announce->set_learning_rate_scale(change.learning_rate_scale);
  announce->set_reason(change.reason);
  announce->set_scheduled(change.scheduled);
  // Forgotten, it would leave servers holding steps for a change that nobody makes.
  Journal(std::move(record), true);
}

void CoordinatorCore::OnCommitted(const PlanAction& action, absl::Time now) {
  const v1::Plan& plan = action.plan;
  counts_.set_plans_total(counts_.plans_total() + 1);
  if (held_plan_.generation() != 0 &&
      (held_plan_.mode() != plan.mode() || held_plan_.staleness_bound() != plan.staleness_bound())) {
    counts_.set_mode_changes_total(counts_.mode_changes_total() + 1);
  }
  held_plan_ = plan;
  Log('I', absl::StrCat("plan ", plan.generation(), ": ", ModeName(plan.mode(), plan.staleness_bound()), " from step ",
                        plan.first_step(), ", ", plan.members_size(), " members (", action.change.reason, ")"));
  if (plan.generation() > recorded_generation_) {
    recorded_generation_ = plan.generation();
    WritePlanLine(watch_.OnCommitted(plan, action.change.reason, action.round_trip, membership_, now), now);
  }
  if (action.change.ticket != 0) {
    v1::SwitchModeReply reply;
    *reply.mutable_plan() = plan;
    reply.set_seconds(absl::ToDoubleSeconds(action.round_trip));
    actions_.push_back(AnswerSwitch{action.change.ticket, std::move(reply)});
  }
  if (phase_ == v1::JobStatus::STARTING && checkpoint_.empty()) return BeginCheckpoint("step0");
  TellPlan();
}

void CoordinatorCore::WritePlanLine(const std::optional<PlanWatch::Report>& report, absl::Time now) {
  if (!report) return;
  counts_.set_stall_seconds_total(counts_.stall_seconds_total() + report->times.stall_seconds);
  Metrics(PlanLine(Seconds(now), report->plan, report->reason, report->times));
}

void CoordinatorCore::TellPlan() {
  if (!training_) return;
  v1::Directive directive;
  *directive.mutable_commit()->mutable_plan() = held_plan_;
  SendToAll(v1::TaskId::WORKER, directive);
  SendToAll(v1::TaskId::EVALUATOR, directive);
}

}  // namespace rubato::coordinator
