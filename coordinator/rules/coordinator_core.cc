#include "coordinator/rules/coordinator_core.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/model_spec.h"
#include "common/status.h"
#include "common/task.h"
#include "coordinator/record/run_record.h"
#include "coordinator/rules/placement.h"
#include "coordinator/rules/policies/policies.h"
#include "coordinator/rules/status_report.h"
#include "coordinator/rules/switch_request.h"

namespace rubato::coordinator {
namespace {

constexpr double kLongestTraceSeconds = 600;

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorCore>> CoordinatorCore::Create(const Options& options) {
  RUBATO_ASSIGN_OR_RETURN(ModelSpec model, BuildModelSpec(options.config.model()));
  RUBATO_ASSIGN_OR_RETURN(std::vector<v1::ChunkPlacement> chunks,
                          SplitIntoChunks(model, options.config.cluster().chunk_bytes()));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ModePolicy> policy, MakeModePolicy(options.config));
  return absl::WrapUnique(new CoordinatorCore(options, std::move(chunks), std::move(policy)));
}

CoordinatorCore::CoordinatorCore(const Options& options, std::vector<v1::ChunkPlacement> chunks,
                                 std::unique_ptr<ModePolicy> policy)
    : job_(options, std::move(chunks)),
      out_(&job_.membership),
      plans_(&job_, &out_),
      evaluations_(&job_, &out_),
      checkpoints_(&job_, &out_),
      cuts_(&job_, &out_, &plans_),
      shards_(&job_, &out_, &cuts_),
      rollback_(&job_, &out_, &cuts_, &plans_),
      end_(&job_, &out_, &plans_, &checkpoints_, &cuts_),
      finishing_(&job_, &out_, &plans_, &evaluations_, &checkpoints_),
      training_(&job_, &out_, &plans_, &evaluations_, &cuts_, &finishing_, &end_, std::move(policy)),
      starting_(&job_, &out_, &plans_, &checkpoints_, &end_),
      roster_({.job = &job_,
               .out = &out_,
               .plans = &plans_,
               .evaluations = &evaluations_,
               .cuts = &cuts_,
               .rollback = &rollback_,
               .checkpoints = &checkpoints_,
               .starting = &starting_,
               .training = &training_,
               .end = &end_}),
      last_tick_(options.start) {}

absl::StatusOr<Actions> CoordinatorCore::Recover(const std::vector<v1::JournalRecord>& records, absl::Time now) {
  // What workers told each other before the job began is of no phase.
  const auto is_talk = [](const v1::JournalRecord& record) { return record.has_value() || record.has_barrier(); };
  if (std::all_of(records.begin(), records.end(), is_talk)) return Actions();
  Recovery recovery({.job = &job_,
                     .out = &out_,
                     .plans = &plans_,
                     .rollback = &rollback_,
                     .starting = &starting_,
                     .training = &training_,
                     .finishing = &finishing_,
                     .end = &end_});
  RUBATO_RETURN_IF_ERROR(recovery.Run(records, now));
  last_tick_ = now;
  return TakeActions(now);
}

Actions CoordinatorCore::OnMessage(const v1::TaskMessage& message, absl::string_view peer, absl::Time now) {
  if (job_.replaced) return {};
  if (message.term() > job_.term) {
    GiveWay(message);
  } else if (message.has_register_()) {
    roster_.OnRegister(message, peer, now);
  } else {
    Route(message, now);
  }
  return TakeActions(now);
}

void CoordinatorCore::Route(const v1::TaskMessage& message, absl::Time now) {
  const v1::TaskId& task = message.task();
  Member* member = job_.membership.Hear(task, now);
  if (member == nullptr) return roster_.OnStranger(task);
  const bool is_server = task.role() == v1::TaskId::SERVER;
  const bool is_worker = task.role() == v1::TaskId::WORKER;
  switch (message.body_case()) {
    case v1::TaskMessage::kHeartbeat:
      return roster_.OnHeartbeat(member, message.heartbeat(), now);
    case v1::TaskMessage::kAnnounceAck:
      if (!is_server || !job_.plan_maker) return;
      return plans_.Apply(job_.plan_maker->OnAnnounceAck(task.index(), message.announce_ack().generation(),
                                                         message.announce_ack().highest_started_step(), now),
                          now);
    case v1::TaskMessage::kPlanAck:
      if (!is_server || !job_.plan_maker) return;
      shards_.OnPlanAck(message.plan_ack());
      return plans_.Apply(job_.plan_maker->OnPlanAck(task.index(), message.plan_ack().generation(),
                                                     message.plan_ack().amendment(), now),
                          now);
    case v1::TaskMessage::kShardRequest:
      if (!is_worker) return;
      cuts_.OnShardRequest(task);
      shards_.OnRequest(task, message.shard_request());
      return;
    case v1::TaskMessage::kEvaluation:
      if (task.role() == v1::TaskId::EVALUATOR) evaluations_.OnResult(message.evaluation(), now);
      return;
    case v1::TaskMessage::kCheckpointDone:
      if (is_server) OnCheckpointDone(task, message.checkpoint_done(), now);
      return;
    case v1::TaskMessage::kTensors:
      if (is_worker && job_.training_began) out_.Add(AppendTensors{message.tensors()});
      return;
    case v1::TaskMessage::kLeaving:
      return roster_.OnLeaving(task, message.leaving(), now);
    case v1::TaskMessage::kRegister:
    case v1::TaskMessage::BODY_NOT_SET:
      return;
  }
}

void CoordinatorCore::OnCheckpointDone(const v1::TaskId& server, const v1::CheckpointDone& done, absl::Time now) {
  const std::string& name = checkpoints_.name();
  if (name.empty() || done.name() != name || job_.Ended()) return;
  if (!done.error().empty()) return end_.OnCheckpointFailed(server, done, now);
  if (!checkpoints_.OnWritten(server.index())) return;
  if (name == kFirstCheckpoint && job_.phase == v1::JobStatus::STARTING) training_.Begin(now);
  if (name == kLastCheckpoint && job_.phase == v1::JobStatus::FINISHING) end_.OnLastCheckpoint(now);
}

void CoordinatorCore::GiveWay(const v1::TaskMessage& message) {
  job_.replaced = true;
  const std::string why = absl::StrCat(TaskName(message.task()), " knows of term ", message.term(),
                                       ", this coordinator of ", job_.term, ": another one has taken its place");
  out_.Take();
  cuts_.Drop(why);
  plans_.AbortSwitches(why);
  out_.Log('E', why);
  out_.Add(Finish{absl::FailedPreconditionError(why)});
}

Actions CoordinatorCore::OnDisconnect(const v1::TaskId& task, absl::Time now) {
  roster_.OnDisconnect(task, now);
  return TakeActions(now);
}

Actions CoordinatorCore::OnTick(absl::Time now) {
  if (job_.replaced) return {};
  // When this process itself stood still, silence says nothing about the tasks.
  if (now - last_tick_ > job_.membership.lease() / 2) job_.membership.RenewAll(now);
  last_tick_ = now;
  if (!job_.Ended()) roster_.CheckLeases(now);
  if (job_.replaced) return TakeActions(now);
  if (job_.plan_maker && !job_.Ended()) plans_.Apply(job_.plan_maker->OnTick(now), now);
  // One tick may take the job through several phases.
  if (job_.phase == v1::JobStatus::STARTING) starting_.Continue(now);
  if (job_.phase == v1::JobStatus::TRAINING) training_.Continue(now);
  if (job_.phase == v1::JobStatus::FINISHING) finishing_.Continue(now);
  end_.CheckStop([this] { return WaitingFor(); }, now);
  if (job_.Ended()) end_.CheckFarewell(now);
  return TakeActions(now);
}

Actions CoordinatorCore::TakeActions(absl::Time now) {
  if (!job_.replaced && job_.phase == v1::JobStatus::STARTING) {
    starting_.WriteFirstCheckpoint(now);
    if (starting_.CanGoOn()) training_.Begin(now);
  }
  if (!job_.replaced) {
    cuts_.NotePlan();
    shards_.ReturnWhenKnown(now);
    cuts_.CompleteWhenWritten(now);
  }
  Actions actions = out_.Take();
  // What an event led to after it had led to a rollback is of a job that is over.
  auto last = std::find_if(actions.begin(), actions.end(),
                           [](const Action& action) { return std::holds_alternative<RestartCore>(action); });
  const bool over = last != actions.end();
  if (over) actions.erase(last + 1, actions.end());
  uint64_t term = over ? job_.term - 1 : job_.term;
  for (Action& action : actions) {
    if (auto* send = std::get_if<SendDirective>(&action)) send->directive.set_term(term);
    if (auto* append = std::get_if<AppendJournal>(&action); append != nullptr && append->record.has_term()) {
      term = append->record.term().term();
    }
  }
  return actions;
}

Actions CoordinatorCore::RequestSwitch(const v1::SwitchModeRequest& request, uint64_t ticket, absl::Time now) {
  absl::StatusOr<PlanChange> change = CheckSwitch(job_.config, request);
  if (job_.phase != v1::JobStatus::TRAINING) {
    change = absl::FailedPreconditionError(absl::StrCat("the mode can be switched while the job is TRAINING; it is ",
                                                        v1::JobStatus::Phase_Name(job_.phase)));
  }
  if (!change.ok()) {
    out_.Add(AnswerSwitch{ticket, change.status()});
  } else {
    change->ticket = ticket;
    plans_.Apply(job_.plan_maker->RequestChange(*change, now), now);
  }
  return TakeActions(now);
}

Actions CoordinatorCore::RequestCheckpoint(uint64_t ticket, absl::Time now) {
  if (job_.phase == v1::JobStatus::TRAINING && !job_.replaced) {
    cuts_.Request(ticket, now);
  } else {
    out_.Add(AnswerCheckpoint{
        ticket, absl::FailedPreconditionError(absl::StrCat("a checkpoint is written while the job is TRAINING; it is ",
                                                           v1::JobStatus::Phase_Name(job_.phase)))});
  }
  return TakeActions(now);
}

Actions CoordinatorCore::RequestStop(const std::string& reason, absl::Time now) {
  end_.RequestStop(reason, now);
  return TakeActions(now);
}

Actions CoordinatorCore::Abort(const std::string& reason, absl::Time now) {
  end_.Fail(reason, now);
  return TakeActions(now);
}

absl::StatusOr<Actions> CoordinatorCore::RequestTrace(const v1::TraceJobRequest& request, v1::TraceJobReply* reply,
                                                      absl::Time now) {
  // Written so that NaN is refused too.
  if (!(request.seconds() > 0 && request.seconds() <= kLongestTraceSeconds)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("seconds: value %g; allowed: above 0, up to %g", request.seconds(), kLongestTraceSeconds));
  }
  if (job_.phase != v1::JobStatus::TRAINING) {
    return absl::FailedPreconditionError(
        absl::StrCat("a trace is recorded while the job is TRAINING; it is ", v1::JobStatus::Phase_Name(job_.phase)));
  }
  trace_id_ = std::max(trace_id_ + 1, static_cast<uint64_t>(absl::ToUnixMicros(now)));
  reply->set_id(trace_id_);
  v1::Directive directive;
  directive.mutable_record_trace()->set_id(trace_id_);
  directive.mutable_record_trace()->set_seconds(request.seconds());
  for (v1::TaskId::Role role : {v1::TaskId::SERVER, v1::TaskId::WORKER}) {
    out_.SendToAll(role, directive);
    for (const Member* member : job_.membership.Alive(role)) *reply->add_tasks() = member->id;
  }
  return TakeActions(now);
}

Actions CoordinatorCore::NoteRequest(absl::string_view request, absl::string_view by, const absl::Status& refused,
                                     absl::Time now) {
  if (job_.training_began) out_.Metrics(RequestLine(job_.Seconds(now), request, by, refused.message()));
  out_.Log('I', absl::StrCat(by, " has asked for: ", request,
                             refused.ok() ? "" : absl::StrCat("; refused: ", refused.message())));
  return TakeActions(now);
}

v1::JobStatus CoordinatorCore::Status(absl::Time now) const {
  v1::JobStatus status = ReportStatus(job_, WaitingFor(), now);
  cuts_.Describe(now, status.mutable_checkpoint());
  return status;
}

std::string CoordinatorCore::WaitingFor() const { return WaitingText(job_, starting_, checkpoints_, cuts_); }

}  // namespace rubato::coordinator
