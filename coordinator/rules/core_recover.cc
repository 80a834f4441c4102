// CoordinatorCore: the journal.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "common/task.h"
#include "coordinator/record/journal.h"
#include "coordinator/rules/coordinator_core.h"

namespace rubato::coordinator {
namespace {

PlanChange ChangeOf(const v1::JournalAnnounce& announce) {
  PlanChange change;
  change.mode = announce.mode();
  change.staleness_bound = announce.staleness_bound();
  change.quorum = announce.quorum();
  change.learning_rate_scale = announce.learning_rate_scale();
  change.reason = announce.reason();
  change.scheduled = announce.scheduled();
  return change;
}

}  // namespace

void CoordinatorCore::JournalTaskState(const v1::TaskId& task) {
  v1::JournalRecord record;
  v1::JournalTask* journal = record.mutable_task();
  *journal->mutable_task() = task;
  const Member* member = membership_.Find(task.role(), task.index());
  if (member != nullptr && SameTask(member->id, task)) {
    journal->set_state(member->state);
    journal->set_address(member->address);
    *journal->mutable_info() = member->info;
    journal->set_reason(member->reason);
  } else {
    journal->set_state(v1::TaskStatus::EVICTED);
    journal->set_reason("replaced by a new incarnation");
  }
  const v1::WorkerProgress* progress = progress_.Find(task);
  if (progress != nullptr && journal->state() != v1::TaskStatus::ALIVE) *journal->mutable_progress() = *progress;
  Journal(std::move(record), false);
}

void CoordinatorCore::JournalPhase(v1::JobStatus::Phase phase, absl::Time since) {
  v1::JournalRecord record;
  record.mutable_phase()->set_phase(phase);
  record.mutable_phase()->set_since_unix_seconds(absl::ToDoubleSeconds(since - absl::UnixEpoch()));
  record.mutable_phase()->set_error(error_);
  Journal(std::move(record), true);
}

absl::StatusOr<Actions> CoordinatorCore::Recover(const std::vector<v1::JournalRecord>& records, absl::Time now) {
  if (records.empty()) return Actions();
  for (const v1::JournalRecord& record : records) RUBATO_RETURN_IF_ERROR(Replay(record, now));
  if (Ended()) {
    return absl::FailedPreconditionError(absl::StrCat("the journal is of a job that has ended (",
                                                      v1::JobStatus::Phase_Name(phase_), error_.empty() ? "" : ": ",
                                                      error_, "); choose another run_directory to run it again"));
  }
  membership_.RenewAll(now);
  last_tick_ = now;
  last_line_ = now;
  evaluator_seen_ = now;
  if (phase_ == v1::JobStatus::FINISHING) finishing_since_ = now;
  progress_.StartInterval(now);
  Log('I', absl::StrCat("recovered from ", records.size(), " journal records: ", v1::JobStatus::Phase_Name(phase_),
                        ", plan ", recovered_plan_.generation()));
  if (recovered_plan_.generation() == 0) {
    for (const Member* worker : membership_.Alive(v1::TaskId::WORKER)) plan_maker_->AddWorker(worker->id, now);
    Apply(plan_maker_->Start(policy_.Initial(), now), now);
    return TakeActions();
  }
  if (training_) held_plan_ = recovered_plan_;
  recorded_generation_ = training_ ? recovered_plan_.generation() : 0;
  Apply(plan_maker_->Resume(recovered_plan_, members_decided_, announced_, now), now);
  if (phase_ == v1::JobStatus::FINISHING) Apply(plan_maker_->Close(), now);
  // A task's end is journalled before the amendment that follows from it.
  for (const v1::TaskId& member : recovered_plan_.members()) {
    if (membership_.FindAlive(member) == nullptr) Apply(plan_maker_->RemoveWorker(member, true, now), now);
  }
  for (const Member* worker : membership_.Alive(v1::TaskId::WORKER))
    Apply(plan_maker_->AddWorker(worker->id, now), now);
  return TakeActions();
}

absl::Status CoordinatorCore::Replay(const v1::JournalRecord& record, absl::Time now) {
  if (record.has_header()) return ReplayHeader(record.header());
  if (!placed_) return absl::InvalidArgumentError("the journal does not begin with a header");
  switch (record.body_case()) {
    case v1::JournalRecord::kTask:
      ReplayTask(record.task(), now);
      break;
    case v1::JournalRecord::kAnnounce:
      announced_.emplace(record.announce().generation(), ChangeOf(record.announce()));
      break;
    case v1::JournalRecord::kPlan:
      recovered_plan_ = record.plan().plan();
      members_decided_ = record.plan().members_decided();
      policy_.MarkDone(record.plan().scheduled());
      if (announced_ && announced_->first <= recovered_plan_.generation()) announced_.reset();
      break;
    case v1::JournalRecord::kLease:
      if (dispatcher_) dispatcher_->RestoreLease(record.lease().worker(), record.lease().grant());
      break;
    case v1::JournalRecord::kFinishedShards:
      if (!dispatcher_) break;
      for (uint64_t shard : record.finished_shards().shards()) dispatcher_->RestoreFinished(shard);
      break;
    case v1::JournalRecord::kEvaluation:
      evaluations_.Restore(record.evaluation());
      break;
    case v1::JournalRecord::kPhase:
      phase_ = record.phase().phase();
      error_ = record.phase().error();
      if (phase_ == v1::JobStatus::TRAINING) {
        training_ = true;
        training_start_ = absl::UnixEpoch() + absl::Seconds(record.phase().since_unix_seconds());
      } else if (phase_ == v1::JobStatus::FINISHING) {
        training_end_ = absl::UnixEpoch() + absl::Seconds(record.phase().since_unix_seconds());
      }
      break;
    case v1::JournalRecord::kSwitchDropped:
      policy_.MarkDone(record.switch_dropped());
      break;
    case v1::JournalRecord::kHeader:
    case v1::JournalRecord::BODY_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

absl::Status CoordinatorCore::ReplayHeader(const v1::JournalHeader& header) {
  if (placed_) return absl::InvalidArgumentError("the journal has two headers");
  if (header.format_version() > kJournalFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat("the journal has format version ", header.format_version(),
                                                      ", this program reads up to ", kJournalFormatVersion));
  }
  if (header.job_name() != config_.name()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the journal is of job ", header.job_name(), ", the config of job ", config_.name()));
  }
  if (header.config_fingerprint() != options_.config_fingerprint) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the journal is of a job whose config has fingerprint %016x, this config has %016x; resume with "
        "the same config and --set options",
        header.config_fingerprint(), options_.config_fingerprint));
  }
  if (header.job_fingerprint() == 0 || header.train_examples() < 1) {
    return absl::InvalidArgumentError("the journal's header has no job_fingerprint or train_examples");
  }
  job_fingerprint_ = header.job_fingerprint();
  chunks_.assign(header.chunks().begin(), header.chunks().end());
  SetUp(header.train_examples());
  return absl::OkStatus();
}

void CoordinatorCore::ReplayTask(const v1::JournalTask& task, absl::Time now) {
  const v1::TaskId& id = task.task();
  if (task.state() == v1::TaskStatus::ALIVE) {
    Membership::Arrival arrival = membership_.Register(id, task.info(), task.address(), now);
    if (arrival.replaced && dispatcher_) dispatcher_->Release(*arrival.replaced);
    return;
  }
  if (task.state() == v1::TaskStatus::LEFT) {
    membership_.Leave(id, task.reason());
    // One that was asked to stop has a reason, and may have left data undone.
    const bool did_all = Static() || DidLastStep(task.progress());
    if (id.role() == v1::TaskId::WORKER && task.reason().empty() && did_all) worker_done_ = true;
  } else {
    membership_.Evict(id, task.reason());
  }
  if (dispatcher_) dispatcher_->Release(id);
  if (task.has_progress()) progress_.OnHeartbeat(id, task.progress());
}

}  // namespace rubato::coordinator
