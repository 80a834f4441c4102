#include "coordinator/rules/roster.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/mutants.h"
#include "common/proto_enum.h"
#include "common/task.h"
#include "coordinator/record/run_record.h"
#include "coordinator/rules/journal_records.h"
#include "coordinator/rules/registration.h"

namespace rubato::coordinator {
namespace {

constexpr char kReplaced[] = "replaced by a new incarnation";

std::string EvictedText(const v1::TaskId& task, absl::string_view reason) {
  return absl::StrCat(TaskName(task), " was evicted: ", reason);
}

}  // namespace

void Roster::OnRegister(const v1::TaskMessage& message, absl::string_view peer, absl::Time now) {
  const v1::TaskId& task = message.task();
  if (job_->Ended()) return out_->SendStop(task, job_->end);
  // The journal does not have to know of it: the record of its registration may be lost.
  const bool old_term = message.term() != 0 && message.term() < job_->rollback_term;
  if (old_term && !RUBATO_MUTANT(kOldTermRegisters)) return TellRestart(task);
  absl::Status allowed = CheckRegistration(
      {.config = &job_->config, .config_fingerprint = job_->config_fingerprint, .train_examples = job_->train_examples},
      task, message.register_());
  if (!allowed.ok()) return Refuse(task, allowed.message());
  std::string address;
  if (task.role() == v1::TaskId::SERVER) {
    absl::StatusOr<std::string> reachable = ReachableAddress(message.register_().address(), peer);
    if (!reachable.ok()) return Refuse(task, absl::StrCat(TaskName(task), ": ", reachable.status().message()));
    address = *std::move(reachable);
  }
  v1::Register info = message.register_();
  if (!info.metrics_address().empty()) {
    absl::StatusOr<std::string> reachable = ReachableAddress(info.metrics_address(), peer);
    if (!reachable.ok()) return Refuse(task, absl::StrCat(TaskName(task), ": metrics: ", reachable.status().message()));
    info.set_metrics_address(*std::move(reachable));
  }
  if (task.role() == v1::TaskId::WORKER && HasDoneItsPart(task, info)) return OnDoneWorker(task, info, now);
  Membership::Arrival arrival = job_->membership.Register(task, info, address, now);
  if (arrival.kind == Membership::Kind::kOutdated) return TellRestart(task);
  if (arrival.kind == Membership::Kind::kGone) {
    const Member* latest = job_->membership.Find(task.role(), task.index());
    const bool same = latest != nullptr && SameTask(latest->id, task);
    return out_->SendRefusal(task, EvictedText(task, same ? latest->reason : kReplaced));
  }
  if (arrival.replaced) {
    out_->SendRefusal(*arrival.replaced, EvictedText(task, kReplaced));
    const v1::TaskId& replaced = *arrival.replaced;
    if (NoteGone(replaced, true, v1::MemberLine::EVICTED, kReplaced, now)) RemoveFromPlan({replaced}, true, now);
    if (job_->replaced) return;
    if (job_->Ended()) return out_->SendStop(task, job_->end);
  }
  if (arrival.kind == Membership::Kind::kNew) OnNew(task, now);
  Greet(task, now);
  if (!job_->placed) parts_.starting->PlaceWhenComplete(now);
}

void Roster::TellRestart(const v1::TaskId& task) {
  v1::Directive directive;
  directive.mutable_restart()->set_reason(job_->rollback_reason);
  out_->Send(task, std::move(directive));
}

bool Roster::HoldsChunks(const v1::TaskId& task) const {
  return task.role() == v1::TaskId::SERVER && job_->placed &&
         std::binary_search(job_->servers.begin(), job_->servers.end(), task.index());
}

void Roster::Refuse(const v1::TaskId& task, absl::string_view reason) {
  out_->Log('W', std::string(reason));
  out_->SendRefusal(task, reason);
}

void Roster::OnNew(const v1::TaskId& task, absl::Time now) {
  const Member* member = job_->membership.FindAlive(task);
  const v1::Register& info = member->info;
  job_->counts.set_joined_total(job_->counts.joined_total() + 1);
  out_->Log('I', absl::StrCat(
                     TaskName(task), " registered", member->address.empty() ? "" : ", reached at ", member->address,
                     info.host_name().empty() ? "" : absl::StrCat(", host ", info.host_name()), ", process ",
                     info.process_id(), info.metrics_address().empty() ? "" : ", metrics at ", info.metrics_address()));
  const bool client = job_->config.model().has_manifest();
  if (task.role() == v1::TaskId::WORKER && !client) job_->train_examples = info.train_examples();
  if (!job_->placed) return;
  out_->Journal(TaskRecord(*job_, task), false);
  if (task.role() != v1::TaskId::WORKER) return;
  if (job_->training_began) out_->Metrics(MemberLine(job_->Seconds(now), task, v1::MemberLine::JOINED, ""));
  parts_.plans->Apply(job_->plan_maker->AddWorker(task, now), now);
}

bool Roster::HasDoneItsPart(const v1::TaskId& worker, const v1::Register& info) const {
  if (job_->membership.IsOutdated(worker)) return false;
  if (info.has_done()) return true;
  const bool data_done = job_->phase == v1::JobStatus::FINISHING || (job_->dispatcher && job_->dispatcher->Done());
  return data_done && job_->membership.FindAlive(worker) == nullptr;
}

void Roster::OnDoneWorker(const v1::TaskId& worker, const v1::Register& info, absl::Time now) {
  // A coordinator that was started again may not have written down that it has left.
  if (Member* member = job_->membership.Hear(worker, now); member != nullptr) {
    v1::Heartbeat last;
    *last.mutable_progress() = info.done();
    OnHeartbeat(member, last, now);
    OnLeaving(worker, v1::Leaving(), now);
    if (job_->replaced || job_->Ended()) return;
  }
  job_->done_workers[{worker.index(), worker.incarnation()}] = worker;
  SendRegistered(worker, "the end of the job");
}

void Roster::SendRegistered(const v1::TaskId& task, const std::string& waiting_for) {
  v1::Directive registered;
  registered.mutable_registered()->set_lease_seconds(absl::ToDoubleSeconds(job_->membership.lease()));
  registered.mutable_registered()->set_waiting_for(waiting_for);
  out_->Send(task, std::move(registered));
}

void Roster::Greet(const v1::TaskId& task, absl::Time now) {
  SendRegistered(task, job_->placed ? "" : parts_.starting->MissingTasks());
  if (!job_->placed) return;
  if (task.role() == v1::TaskId::WORKER) {
    if (job_->training_began) out_->Send(task, job_->Describe());
    if (parts_.starting->assigning()) out_->Send(task, job_->Describe(/*with_plan=*/false));
    return;
  }
  out_->Send(task, job_->Describe());
  if (task.role() == v1::TaskId::EVALUATOR) return parts_.evaluations->Remind(task);
  parts_.plans->Apply(job_->plan_maker->OnServerBack(task.index()), now);
  parts_.checkpoints->Remind(task);
}

void Roster::OnHeartbeat(Member* member, const v1::Heartbeat& heartbeat, absl::Time now) {
  member->resident_bytes = heartbeat.resident_bytes();
  member->last_problem = heartbeat.last_problem();
  member->trace = heartbeat.trace();
  if (heartbeat.cut().id() != 0) parts_.cuts->OnProgress(member->id, heartbeat.cut());
  if (member->id.role() == v1::TaskId::SERVER) {
    member->server = heartbeat.server();
    job_->gradient_noise.OnHeartbeat(member->id, heartbeat.server().gradient_moments());
  }
  if (member->id.role() == v1::TaskId::EVALUATOR) member->progress = heartbeat.progress();
  if (member->id.role() != v1::TaskId::WORKER) return;
  // Counts never go back: a heartbeat with lower ones was overtaken, or comes from a worker that has cleared them.
  if (heartbeat.progress().steps_total() < member->progress.steps_total()) return;
  const v1::TaskId task = member->id;
  member->progress = heartbeat.progress();
  job_->progress.OnHeartbeat(task, heartbeat.progress());
  if (!job_->plan_maker) return;
  parts_.plans->Apply(job_->plan_maker->OnEntered(task, heartbeat.progress().generation(), now), now);
}

void Roster::OnStranger(const v1::TaskId& task) {
  if (job_->membership.IsOutdated(task)) return TellRestart(task);
  const Member* latest = job_->membership.Find(task.role(), task.index());
  if (latest == nullptr || !SameTask(latest->id, task) || latest->state != v1::TaskStatus::EVICTED) return;
  out_->SendRefusal(task, EvictedText(task, latest->reason));
}

void Roster::OnDisconnect(const v1::TaskId& task, absl::Time now) {
  const bool waited = job_->done_workers.erase({task.index(), task.incarnation()}) > 0;
  const Member* member = job_->membership.FindAlive(task);
  if (job_->Ended() && (waited || member != nullptr)) {
    job_->membership.Leave(task, "");
    return parts_.end->CheckFarewell(now);
  }
  if (member == nullptr) return;
  job_->membership.NoteDisconnect(task, now);
  out_->Log('W', absl::StrCat("the connection to ", TaskName(task), " broke; it has ",
                              absl::FormatDuration(job_->membership.lease()), " to come back"));
}

void Roster::OnCannotRestore(const v1::TaskId& server, const std::string& error, absl::Time now) {
  const std::string why = absl::StrCat(TaskName(server), ": ", error);
  if (parts_.rollback->BeginFromEarlier(why, now)) return;
  // From its beginning the job would remove what may still be of use to somebody.
  parts_.end->Fail(absl::StrCat(why, "; there is no other checkpoint, and this one is left as it is"), now);
  job_->membership.Leave(server, error);
}

void Roster::OnLeaving(const v1::TaskId& task, const v1::Leaving& leaving, absl::Time now) {
  if (job_->Ended()) {
    job_->membership.Leave(task, leaving.error());
    return parts_.end->CheckFarewell(now);
  }
  if (leaving.cause() == v1::Leaving::CANNOT_RESTORE && HoldsChunks(task) && !job_->training_began) {
    return OnCannotRestore(task, leaving.error(), now);
  }
  if (leaving.cause() == v1::Leaving::TABLE_FULL && HoldsChunks(task)) {
    // From a checkpoint it would come to the same point.
    parts_.end->Fail(absl::StrCat(TaskName(task), ": ", leaving.error()), now);
    job_->membership.Leave(task, leaving.error());
    return;
  }
  if (!leaving.error().empty()) {
    if (Evict(task, leaving.error(), now)) RemoveFromPlan({task}, true, now);
    switch (leaving.cause()) {
      case v1::Leaving::NOT_FINITE:
        return parts_.end->Fail(
            absl::StrCat(TaskName(task), ": ", leaving.error(), "; consistency.on_non_finite is STOP_JOB"), now);
      case v1::Leaving::CANNOT_RESTORE:
      case v1::Leaving::TABLE_FULL:
      case v1::Leaving::CAUSE_UNSPECIFIED:
        RUBATO_NO_VALUE_OF(v1::Leaving_Cause_Leaving_Cause) : return;
    }
    return;
  }
  const Member* member = job_->membership.FindAlive(task);
  if (task.role() == v1::TaskId::WORKER && job_->training_began && !leaving.drained()) {
    parts_.training->OnWorkerLeft(member->progress);
  }
  const std::string reason = leaving.drained() ? "asked to stop" : "";
  job_->membership.Leave(task, reason);
  // To the plan a drained worker is a lost one: the others take over its part of the data.
  const bool lost = leaving.drained();
  if (NoteGone(task, lost, v1::MemberLine::LEFT, reason, now)) RemoveFromPlan({task}, lost, now);
}

void Roster::CheckLeases(absl::Time now) {
  const std::string reason =
      absl::StrFormat("no heartbeat for %.1f s", absl::ToDoubleSeconds(job_->membership.lease()));
  std::vector<v1::TaskId> workers;
  for (const v1::TaskId& task : job_->membership.Expired(now)) {
    if (job_->Ended() || job_->replaced) return;
    if (Evict(task, reason, now)) workers.push_back(task);
  }
  if (!workers.empty()) RemoveFromPlan(workers, true, now);
}

bool Roster::Evict(const v1::TaskId& task, const std::string& reason, absl::Time now) {
  if (!job_->membership.Evict(task, reason)) return false;
  out_->SendRefusal(task, EvictedText(task, reason));
  return NoteGone(task, true, v1::MemberLine::EVICTED, reason, now);
}

bool Roster::NoteGone(const v1::TaskId& task, bool lost, v1::MemberLine::Event event, const std::string& reason,
                      absl::Time now) {
  const Member* member = job_->membership.Find(task.role(), task.index());
  const bool evicted = event == v1::MemberLine::EVICTED;
  if (evicted) {
    job_->counts.set_evicted_total(job_->counts.evicted_total() + 1);
  } else {
    job_->counts.set_left_total(job_->counts.left_total() + 1);
  }
  const std::string address = member != nullptr && SameTask(member->id, task) ? member->address : "";
  out_->Log(lost ? 'W' : 'I',
            absl::StrCat(TaskName(task), " ", evicted ? "evicted" : "left", reason.empty() ? "" : ": ", reason));
  if (job_->training_began) out_->Metrics(MemberLine(job_->Seconds(now), task, event, reason));
  if (!job_->placed) {
    const bool nobody = job_->membership.Alive(v1::TaskId::WORKER).empty();
    const bool client = job_->config.model().has_manifest();
    if (nobody && !client && job_->rollback_term == 1) job_->train_examples = 0;
    return false;
  }
  out_->Journal(TaskRecord(*job_, task), false);
  if (HoldsChunks(task)) {
    const std::string at = address.empty() ? "" : absl::StrCat(" (", address, ")");
    parts_.rollback->Begin(absl::StrCat(TaskName(task), at, " is lost: ", reason.empty() ? "it left" : reason), now);
    return false;
  }
  if (task.role() == v1::TaskId::WORKER && job_->dispatcher) job_->dispatcher->Leave(task);
  return task.role() == v1::TaskId::WORKER;
}

void Roster::RemoveFromPlan(const std::vector<v1::TaskId>& workers, bool lost, absl::Time now) {
  parts_.plans->Apply(job_->plan_maker->RemoveWorkers(workers, lost, now), now);
  if (lost) parts_.training->OnWorkerLost();
  parts_.training->CheckWorkersGone(now);
}

}  // namespace rubato::coordinator
