#include "coordinator/coordinator_core.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/config/local_sgd.h"
#include "common/model_spec.h"
#include "common/static_partition.h"
#include "common/status.h"
#include "common/task.h"
#include "coordinator/placement.h"
#include "coordinator/run_record.h"

namespace rubato::coordinator {
namespace {

// "accuracy 0.9712, loss 0.1032"
std::string EvaluationText(const v1::EvaluationResult& result) {
  std::string text;
  if (result.has_accuracy()) absl::StrAppendFormat(&text, "accuracy %.4f, ", result.accuracy());
  if (result.has_r2()) absl::StrAppendFormat(&text, "R2 %.4f, ", result.r2());
  absl::StrAppendFormat(&text, "loss %.4f", result.loss());
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorCore>> CoordinatorCore::Create(const Options& options) {
  RUBATO_ASSIGN_OR_RETURN(ModelSpec model, BuildModelSpec(options.config.model()));
  const v1::ClusterConfig& cluster = options.config.cluster();
  RUBATO_ASSIGN_OR_RETURN(std::vector<v1::ChunkPlacement> chunks, SplitIntoChunks(model, cluster.chunk_bytes()));
  PlaceChunks(cluster.servers(), cluster.partitions_per_server(), &chunks);
  return absl::WrapUnique(new CoordinatorCore(options, std::move(chunks)));
}

CoordinatorCore::CoordinatorCore(const Options& options, std::vector<v1::ChunkPlacement> chunks)
    : config_(options.config),
      options_(options),
      job_fingerprint_(options.job_fingerprint),
      chunks_(std::move(chunks)),
      last_tick_(options.start),
      membership_(absl::Seconds(options.config.cluster().lease_seconds())),
      policy_(options.config.consistency()),
      evaluations_(options.config.cluster().evaluators() > 0 ? options.config.evaluation().every_epochs() : 0),
      evaluator_seen_(options.start) {}

Actions CoordinatorCore::OnMessage(const v1::TaskMessage& message, absl::string_view peer, absl::Time now) {
  if (message.body_case() == v1::TaskMessage::kRegister) {
    OnRegister(message, peer, now);
  } else {
    Handle(message, now);
  }
  return TakeActions();
}

Actions CoordinatorCore::OnDisconnect(const v1::TaskId& task, absl::Time now) {
  const Member* member = membership_.FindAlive(task);
  if (member == nullptr) return {};
  if (Ended()) {
    membership_.Leave(task, "");
    CheckEnded(now);
  } else {
    Log('W', absl::StrCat("the connection to ", TaskName(task), " broke; it has ",
                          absl::FormatDuration(membership_.lease()), " to come back"));
  }
  return TakeActions();
}

Actions CoordinatorCore::OnTick(absl::Time now) {
  // When this process itself stood still, silence says nothing about the tasks.
  if (now - last_tick_ > membership_.lease() / 2) membership_.RenewAll(now);
  last_tick_ = now;
  if (!Ended()) CheckLeases(now);
  if (plan_maker_ && !Ended()) Apply(plan_maker_->OnTick(now), now);
  if (phase_ == v1::JobStatus::STARTING) {
    TellWaiting();
    if (!placed_ && now - options_.start >= absl::Seconds(config_.cluster().start_timeout_seconds())) {
      Fail(absl::StrFormat("the job could not start within cluster.start_timeout_seconds, %g: missing %s",
                           config_.cluster().start_timeout_seconds(), MissingTasks()),
           now);
    }
  }
  if (phase_ == v1::JobStatus::TRAINING) Train(now);
  if (phase_ == v1::JobStatus::FINISHING) ContinueFinishing(now);
  CheckStopping(now);
  if (Ended()) CheckEnded(now);
  return TakeActions();
}

void CoordinatorCore::Handle(const v1::TaskMessage& message, absl::Time now) {
  const v1::TaskId& task = message.task();
  Member* member = membership_.Hear(task, now);
  if (member == nullptr) {
    const Member* latest = membership_.Find(task.role(), task.index());
    if (latest != nullptr && SameTask(latest->id, task) && latest->state == v1::TaskStatus::EVICTED) {
      SendStop(task, absl::StrCat(TaskName(task), " was evicted: ", latest->reason));
    }
    return;
  }
  const bool is_server = task.role() == v1::TaskId::SERVER;
  switch (message.body_case()) {
    case v1::TaskMessage::kHeartbeat:
      return OnHeartbeat(member, message.heartbeat(), now);
    case v1::TaskMessage::kAnnounceAck:
      if (!is_server || !plan_maker_) return;
      return Apply(plan_maker_->OnAnnounceAck(task.index(), message.announce_ack().generation(),
                                              message.announce_ack().highest_started_step(), now),
                   now);
    case v1::TaskMessage::kPlanAck:
      if (!is_server || !plan_maker_) return;
      return Apply(
          plan_maker_->OnPlanAck(task.index(), message.plan_ack().generation(), message.plan_ack().amendment(), now),
          now);
    case v1::TaskMessage::kShardRequest:
      if (task.role() == v1::TaskId::WORKER) OnShardRequest(task, message.shard_request());
      return;
    case v1::TaskMessage::kEvaluation:
      if (task.role() == v1::TaskId::EVALUATOR) OnEvaluation(message.evaluation(), now);
      return;
    case v1::TaskMessage::kCheckpointDone:
      if (is_server) OnCheckpointDone(task, message.checkpoint_done(), now);
      return;
    case v1::TaskMessage::kTensors:
      if (task.role() == v1::TaskId::WORKER && training_) actions_.push_back(AppendTensors{message.tensors()});
      return;
    case v1::TaskMessage::kLeaving:
      return OnLeaving(task, message.leaving(), now);
    case v1::TaskMessage::kRegister:
    case v1::TaskMessage::BODY_NOT_SET:
      return;
  }
}

void CoordinatorCore::OnHeartbeat(Member* member, const v1::Heartbeat& heartbeat, absl::Time now) {
  member->resident_bytes = heartbeat.resident_bytes();
  member->last_problem = heartbeat.last_problem();
  member->trace = heartbeat.trace();
  if (member->id.role() == v1::TaskId::SERVER) member->server = heartbeat.server();
  if (member->id.role() == v1::TaskId::EVALUATOR) member->progress = heartbeat.progress();
  if (member->id.role() != v1::TaskId::WORKER) return;
  // Counts never go back: a heartbeat with lower ones was overtaken, or comes from a worker that has cleared them.
  if (heartbeat.progress().steps_total() < member->progress.steps_total()) return;
  const v1::TaskId task = member->id;
  member->progress = heartbeat.progress();
  progress_.OnHeartbeat(task, heartbeat.progress());
  if (plan_maker_) Apply(plan_maker_->OnEntered(task, heartbeat.progress().generation(), now), now);
}

void CoordinatorCore::OnShardRequest(const v1::TaskId& worker, const v1::ShardRequest& request) {
  if (!dispatcher_ || Static()) return;
  ShardDispatcher::Answer answer = dispatcher_->Request(worker, request);
  v1::JournalRecord record;
  if (!answer.finished.empty()) {
    record.mutable_finished_shards()->mutable_shards()->Add(answer.finished.begin(), answer.finished.end());
    Journal(record, false);
  }
  if (answer.leased) {
    *record.mutable_lease()->mutable_worker() = worker;
    *record.mutable_lease()->mutable_grant() = *answer.grant;
    Journal(record, false);
  }
  if (!answer.grant) return;
  v1::Directive directive;
  *directive.mutable_shard_grant() = *answer.grant;
  Send(worker, std::move(directive));
}

void CoordinatorCore::OnEvaluation(const v1::EvaluationResult& result, absl::Time now) {
  const EvaluationSchedule::Entry* entry = evaluations_.OnResult(result);
  if (entry == nullptr) return;
  v1::JournalRecord record;
  *record.mutable_evaluation()->mutable_request() = entry->request;
  record.mutable_evaluation()->set_final(entry->final);
  *record.mutable_evaluation()->mutable_result() = result;
  Journal(std::move(record), false);
  if (!result.error().empty()) {
    Log('W', absl::StrFormat("the %sevaluation at epoch %g failed: %s", entry->final ? "final " : "",
                             entry->request.epoch(), result.error()));
    return;
  }
  const int64_t step = result.step() >= 0 ? result.step() : progress_.Totals().step;
  counts_.set_evaluations_total(counts_.evaluations_total() + 1);
  Metrics(EvaluationLine(Seconds(now), entry->request.epoch(), step, result, entry->final));
  Log('I', absl::StrFormat("%sevaluation at epoch %.2f: %s", entry->final ? "final " : "", entry->request.epoch(),
                           EvaluationText(result)));
}

void CoordinatorCore::OnLeaving(const v1::TaskId& task, const v1::Leaving& leaving, absl::Time now) {
  if (Ended()) {
    membership_.Leave(task, leaving.error());
    return CheckEnded(now);
  }
  if (!leaving.error().empty()) {
    Evict(task, leaving.error(), now);
    if (absl::StartsWith(leaving.error(), "STOP_JOB:")) Fail(absl::StrCat(TaskName(task), ": ", leaving.error()), now);
    return;
  }
  const Member* member = membership_.FindAlive(task);
  if (task.role() == v1::TaskId::WORKER && training_ && !leaving.drained()) {
    if (Static() || DidLastStep(member->progress)) worker_done_ = true;
  }
  const std::string reason = leaving.drained() ? "asked to stop" : "";
  membership_.Leave(task, reason);
  // To the plan a drained worker is a lost one: the others take over its part of the data.
  Detach(task, leaving.drained(), v1::MemberLine::LEFT, reason, now);
}

void CoordinatorCore::Evict(const v1::TaskId& task, const std::string& reason, absl::Time now) {
  if (!membership_.Evict(task, reason)) return;
  SendStop(task, absl::StrCat(TaskName(task), " was evicted: ", reason));
  Detach(task, true, v1::MemberLine::EVICTED, reason, now);
}

void CoordinatorCore::Detach(const v1::TaskId& task, bool lost, v1::MemberLine::Event event, const std::string& reason,
                             absl::Time now) {
  const Member* member = membership_.Find(task.role(), task.index());
  const bool evicted = event == v1::MemberLine::EVICTED;
  if (evicted) {
    counts_.set_evicted_total(counts_.evicted_total() + 1);
  } else {
    counts_.set_left_total(counts_.left_total() + 1);
  }
  const std::string address = member != nullptr && SameTask(member->id, task) ? member->address : "";
  Log(lost ? 'W' : 'I',
      absl::StrCat(TaskName(task), " ", evicted ? "evicted" : "left", reason.empty() ? "" : ": ", reason));
  if (training_) Metrics(MemberLine(Seconds(now), task, event, reason));
  if (!placed_) {
    if (membership_.Alive(v1::TaskId::WORKER).empty()) train_examples_ = 0;
    return;
  }
  JournalTaskState(task);
  if (task.role() == v1::TaskId::SERVER) {
    const std::string at = address.empty() ? "" : absl::StrCat(" (", address, ")");
    return Fail(
        absl::StrCat(TaskName(task), at, ": ", reason.empty() ? "it left" : reason, "; its parameters are lost"), now);
  }
  if (task.role() != v1::TaskId::WORKER) return;
  if (dispatcher_) dispatcher_->Release(task);
  if (plan_maker_) Apply(plan_maker_->RemoveWorker(task, lost, now), now);
  CheckWorkersGone(now);
}

void CoordinatorCore::CheckLeases(absl::Time now) {
  const std::string reason = absl::StrFormat("no heartbeat for %.1f s", absl::ToDoubleSeconds(membership_.lease()));
  for (const v1::TaskId& task : membership_.Expired(now)) {
    if (!Ended()) Evict(task, reason, now);
  }
}

void CoordinatorCore::Train(absl::Time now) {
  const ProgressTotals totals = progress_.Totals();
  if (now - last_line_ >= absl::Seconds(1)) {
    last_line_ = now;
    Metrics(
        ProgressLine(Seconds(now), config_, progress_.TakeInterval(now), Epoch(), held_plan_, progress_.ByWorker()));
  }
  std::optional<PlanChange> change = policy_.Due({.step = totals.step, .epoch = Epoch(), .seconds = Seconds(now)});
  if (change) Apply(plan_maker_->RequestChange(*change, now), now);
  WritePlanLine(watch_.Check(held_plan_, membership_, now), now);
  // In SYNC the weights of one step ahead can still be asked for when the request arrives.
  int64_t at_step = held_plan_.mode() == v1::SYNC ? totals.step + 2 : -1;
  if (at_step >= 0) at_step = std::min(at_step, LastStep());
  if (std::optional<v1::Evaluate> evaluate = evaluations_.Due(Epoch(), at_step)) {
    v1::JournalRecord record;
    *record.mutable_evaluation()->mutable_request() = *evaluate;
    Journal(std::move(record), false);
    v1::Directive directive;
    *directive.mutable_evaluate() = *evaluate;
    SendToAll(v1::TaskId::EVALUATOR, directive);
  }
  CheckWorkersGone(now);
}

bool CoordinatorCore::DidLastStep(const v1::WorkerProgress& progress) const {
  const int64_t max_steps = config_.training().max_steps();
  return max_steps > 0 && progress.step() + 1 >= max_steps;
}

int64_t CoordinatorCore::LastStep() const {
  const v1::TrainingConfig& training = config_.training();
  int64_t last = training.max_steps() > 0 ? training.max_steps() : std::numeric_limits<int64_t>::max();
  if (!Static() || training.epochs() == 0) return last;
  const auto members = static_cast<int64_t>(std::max<size_t>(plan_maker_->members_decided(), 1));
  return std::min(last, StaticEndStep(held_plan_.first_example(), held_plan_.first_step(), training.epochs(), members,
                                      ExamplesPerStep(config_), train_examples_));
}

void CoordinatorCore::CheckWorkersGone(absl::Time now) {
  if (phase_ != v1::JobStatus::TRAINING || !membership_.Alive(v1::TaskId::WORKER).empty()) {
    workers_gone_ = absl::InfiniteFuture();
    return;
  }
  if (worker_done_ || (dispatcher_ && dispatcher_->Done())) return BeginFinishing(now);
  workers_gone_ = std::min(workers_gone_, now);
  if (now - workers_gone_ < membership_.lease()) return;
  std::vector<std::string> names;
  for (const auto& [key, member] : membership_.all()) {
    if (member.id.role() != v1::TaskId::WORKER) continue;
    names.push_back(absl::StrCat(TaskName(member.id), ": ", member.reason.empty() ? "left" : member.reason));
  }
  Fail(absl::StrCat("no worker is left and the data is not used up (", absl::StrJoin(names, "; "), ")"), now);
}

Actions CoordinatorCore::RequestSwitch(const v1::SwitchModeRequest& request, uint64_t ticket, absl::Time now) {
  absl::StatusOr<PlanChange> change = CheckSwitch(config_, request);
  if (phase_ != v1::JobStatus::TRAINING) {
    change = absl::FailedPreconditionError(
        absl::StrCat("the mode can be switched while the job is TRAINING; it is ", v1::JobStatus::Phase_Name(phase_)));
  }
  if (!change.ok()) {
    actions_.push_back(AnswerSwitch{ticket, change.status()});
  } else {
    change->ticket = ticket;
    Apply(plan_maker_->RequestChange(*change, now), now);
  }
  return TakeActions();
}

void CoordinatorCore::Send(const v1::TaskId& task, v1::Directive directive) {
  actions_.push_back(SendDirective{task, std::move(directive)});
}

void CoordinatorCore::SendStop(const v1::TaskId& task, absl::string_view error) {
  v1::Directive directive;
  directive.mutable_stop()->set_error(error.data(), error.size());
  Send(task, std::move(directive));
}

void CoordinatorCore::SendToAll(v1::TaskId::Role role, const v1::Directive& directive) {
  for (const Member* member : membership_.Alive(role)) Send(member->id, directive);
}

void CoordinatorCore::Journal(v1::JournalRecord record, bool durable) {
  actions_.push_back(AppendJournal{std::move(record), durable});
}

}  // namespace rubato::coordinator
