#include "coordinator/rules/recovery.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "common/task.h"
#include "coordinator/record/journal.h"
#include "coordinator/rules/journal_records.h"

namespace rubato::coordinator {

absl::Status Recovery::Run(const std::vector<v1::JournalRecord>& records, absl::Time now) {
  for (const v1::JournalRecord& record : records) RUBATO_RETURN_IF_ERROR(Replay(record, now));
  if (job_->Ended()) {
    const std::string& error = job_->end.error();
    return absl::FailedPreconditionError(absl::StrCat("the journal is of a job that has ended (",
                                                      v1::JobStatus::Phase_Name(job_->phase), error.empty() ? "" : ": ",
                                                      error, "); choose another run_directory to run it again"));
  }
  job_->membership.RenewAll(now);
  finishing_->Resume(now);
  RUBATO_RETURN_IF_ERROR(training_->Resume(policy_memory_, now));
  out_->Log('I', absl::StrCat("recovered from ", records.size(), " journal records: ",
                              v1::JobStatus::Phase_Name(job_->phase), ", plan ", plan_.generation()));
  if (plan_.generation() == 0) {
    starting_->BeginFirstPlan(now);
  } else {
    ResumePlan(now);
  }
  return absl::OkStatus();
}

void Recovery::ResumePlan(absl::Time now) {
  if (job_->training_began) job_->held_plan = plan_;
  plans_->Restore(policy_memory_, job_->training_began ? plan_.generation() : 0);
  PlanMaker& plan_maker = *job_->plan_maker;
  plans_->Apply(plan_maker.Resume(plan_, members_decided_, announced_, now), now);
  if (job_->phase == v1::JobStatus::FINISHING) plans_->Apply(plan_maker.Close(), now);
  // A task's end is journalled before the amendment that follows from it.
  for (const v1::TaskId& member : plan_.members()) {
    if (job_->membership.FindAlive(member) == nullptr) plans_->Apply(plan_maker.RemoveWorker(member, true, now), now);
  }
  for (const Member* worker : job_->membership.Alive(v1::TaskId::WORKER)) {
    plans_->Apply(plan_maker.AddWorker(worker->id, now), now);
  }
}

absl::Status Recovery::Replay(const v1::JournalRecord& record, absl::Time now) {
  if (record.has_header()) return ReplayHeader(record.header());
  if (!job_->placed) return absl::InvalidArgumentError("the journal does not begin with a header");
  switch (record.body_case()) {
    case v1::JournalRecord::kTask:
      ReplayTask(record.task(), now);
      break;
    case v1::JournalRecord::kAnnounce:
      announced_.emplace(record.announce().generation(), ChangeOf(record.announce()));
      policy_memory_ = record.announce().policy_memory();
      break;
    case v1::JournalRecord::kPlan:
      ReplayPlan(record.plan());
      break;
    case v1::JournalRecord::kLease:
      if (job_->dispatcher) job_->dispatcher->RestoreLease(record.lease().worker(), record.lease().grant());
      break;
    case v1::JournalRecord::kFinishedShards:
      if (!job_->dispatcher) break;
      for (uint64_t shard : record.finished_shards().shards()) job_->dispatcher->RestoreFinished(shard);
      break;
    case v1::JournalRecord::kEvaluation:
      job_->evaluations.Restore(record.evaluation());
      break;
    case v1::JournalRecord::kPhase:
      ReplayPhase(record.phase());
      break;
    case v1::JournalRecord::kPolicyMemory:
      policy_memory_ = record.policy_memory();
      break;
    case v1::JournalRecord::kHeader:
    case v1::JournalRecord::BODY_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

absl::Status Recovery::ReplayHeader(const v1::JournalHeader& header) {
  if (job_->placed) return absl::InvalidArgumentError("the journal has two headers");
  if (header.format_version() > kJournalFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat("the journal has format version ", header.format_version(),
                                                      ", this program reads up to ", kJournalFormatVersion));
  }
  if (header.job_name() != job_->config.name()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the journal is of job ", header.job_name(), ", the config of job ", job_->config.name()));
  }
  if (header.config_fingerprint() != job_->config_fingerprint) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the journal is of a job whose config has fingerprint %016x, this config has %016x; resume with "
        "the same config and --set options",
        header.config_fingerprint(), job_->config_fingerprint));
  }
  if (header.job_fingerprint() == 0 || header.train_examples() < 1) {
    return absl::InvalidArgumentError("the journal's header has no job_fingerprint or train_examples");
  }
  job_->job_fingerprint = header.job_fingerprint();
  job_->chunks.assign(header.chunks().begin(), header.chunks().end());
  job_->Place(header.train_examples());
  return absl::OkStatus();
}

void Recovery::ReplayTask(const v1::JournalTask& task, absl::Time now) {
  const v1::TaskId& id = task.task();
  if (task.state() == v1::TaskStatus::ALIVE) {
    Membership::Arrival arrival = job_->membership.Register(id, task.info(), task.address(), now);
    if (arrival.replaced && job_->dispatcher) job_->dispatcher->Release(*arrival.replaced);
    return;
  }
  if (task.state() == v1::TaskStatus::LEFT) {
    job_->membership.Leave(id, task.reason());
    // One that was asked to stop has a reason, and may have left data undone.
    if (id.role() == v1::TaskId::WORKER && task.reason().empty()) training_->OnWorkerLeft(task.progress());
  } else {
    job_->membership.Evict(id, task.reason());
  }
  if (job_->dispatcher) job_->dispatcher->Release(id);
  if (task.has_progress()) job_->progress.OnHeartbeat(id, task.progress());
}

void Recovery::ReplayPlan(const v1::JournalPlan& plan) {
  plan_ = plan.plan();
  members_decided_ = plan.members_decided();
  if (plan_.amendment() == 0) policy_memory_ = plan.policy_memory();
  if (announced_ && announced_->first <= plan_.generation()) announced_.reset();
}

void Recovery::ReplayPhase(const v1::JournalPhase& phase) {
  job_->phase = phase.phase();
  job_->end.set_error(phase.error());
  const absl::Time since = absl::UnixEpoch() + absl::Seconds(phase.since_unix_seconds());
  if (job_->phase == v1::JobStatus::TRAINING) {
    job_->training_began = true;
    job_->training_start = since;
  } else if (job_->phase == v1::JobStatus::FINISHING) {
    job_->training_end = since;
  }
}

}  // namespace rubato::coordinator
