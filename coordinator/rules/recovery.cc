#include "coordinator/rules/recovery.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/mutants.h"
#include "common/status.h"
#include "common/task.h"
#include "coordinator/record/journal.h"
#include "coordinator/rules/journal_records.h"

namespace rubato::coordinator {

absl::Status Recovery::Run(const std::vector<v1::JournalRecord>& records, absl::Time now) {
  for (const v1::JournalRecord& record : records) RUBATO_RETURN_IF_ERROR(Replay(record, now));
  job_->last_generation = std::max({job_->last_generation, plan_.generation(), announced_ ? announced_->first : 0});
  if (job_->phase == v1::JobStatus::FAILED && job_->resume_ended) {
    parts_.rollback->Begin(absl::StrCat("the job is resumed (it had ended: ", job_->end.error(), ")"), now);
    return absl::OkStatus();
  }
  if (job_->Ended()) {
    const std::string& error = job_->end.error();
    return absl::FailedPreconditionError(absl::StrCat("the journal is of a job that has ended (",
                                                      v1::JobStatus::Phase_Name(job_->phase), error.empty() ? "" : ": ",
                                                      error, "); choose another run_directory to run it again"));
  }
  // Until the job has gone back, whoever comes next is to see that it must.
  const bool forgot = MayHaveForgotten();
  out_->Journal(TermRecord(++job_->term, forgot ? boot_id_ : job_->boot_id), true);
  job_->membership.RenewAll(now);
  parts_.finishing->Resume(now);
  RUBATO_RETURN_IF_ERROR(parts_.training->Resume(policy_memory_, now));
  out_->Log(
      'I', absl::StrCat("recovered from ", records.size(), " journal records: ", v1::JobStatus::Phase_Name(job_->phase),
                        ", plan ", plan_.generation(), ", term ", job_->term));
  if (plan_.generation() != 0) {
    ResumePlan(now);
  } else if (job_->placed) {
    parts_.starting->BeginFirstPlan(now);
  } else {
    plans_->Restore(policy_memory_, 0);
  }
  for (uint32_t server : job_->servers) {
    const Member* member = job_->membership.Find(v1::TaskId::SERVER, server);
    if (member != nullptr && member->state == v1::TaskStatus::ALIVE) continue;
    // The coordinator ended before it could go back.
    GoBack(absl::StrCat(TaskName(v1::TaskId::SERVER, server), " is lost"), now);
    return absl::OkStatus();
  }
  if (forgot) {
    GoBack("the coordinator's machine was started again, or is another one", now);
    return absl::OkStatus();
  }
  if (stop_reason_) parts_.end->RequestStop(*stop_reason_, now);
  return absl::OkStatus();
}

bool Recovery::MayHaveForgotten() const {
  if (RUBATO_MUTANT(kGoesOnAfterPowerCut)) return false;
  return job_->dispatcher && job_->phase == v1::JobStatus::TRAINING && boot_id_ != job_->boot_id;
}

void Recovery::GoBack(const std::string& reason, absl::Time now) {
  job_->stop_requested = stop_reason_;
  parts_.rollback->Begin(reason, now);
}

void Recovery::ResumePlan(absl::Time now) {
  if (job_->training_began) job_->held_plan = plan_;
  plans_->Restore(policy_memory_, job_->training_began ? plan_.generation() : 0);
  PlanMaker& plan_maker = *job_->plan_maker;
  plans_->Apply(plan_maker.Resume(plan_, members_decided_, requested_quorum_, announced_, now), now);
  if (job_->phase == v1::JobStatus::FINISHING) plans_->Apply(plan_maker.Close(), now);
  // A task's end is journalled before the amendment that follows from it.
  std::vector<v1::TaskId> gone;
  for (const v1::TaskId& member : plan_.members()) {
    if (job_->membership.FindAlive(member) == nullptr) gone.push_back(member);
  }
  plans_->Apply(plan_maker.RemoveWorkers(gone, true, now), now);
  for (const Member* worker : job_->membership.Alive(v1::TaskId::WORKER)) {
    plans_->Apply(plan_maker.AddWorker(worker->id, now), now);
  }
}

absl::Status Recovery::Replay(const v1::JournalRecord& record, absl::Time now) {
  if (record.has_header()) return ReplayHeader(record.header());
  if (!has_header_ && (record.has_value() || record.has_barrier())) return absl::OkStatus();
  if (!has_header_) return absl::InvalidArgumentError("the journal does not begin with a header");
  switch (record.body_case()) {
    case v1::JournalRecord::kTask:
      ReplayTask(record.task(), now);
      break;
    case v1::JournalRecord::kAnnounce:
      if (RUBATO_MUTANT(kAnnouncementNotReplayed)) break;
      announced_.emplace(record.announce().generation(), ChangeOf(record.announce()));
      policy_memory_ = record.announce().policy_memory();
      break;
    case v1::JournalRecord::kPlan:
      ReplayPlan(record.plan());
      break;
    case v1::JournalRecord::kLease:
      if (!job_->dispatcher || RUBATO_MUTANT(kLeaseNotReplayed)) break;
      job_->dispatcher->RestoreLease(record.lease().worker(), record.lease().grant());
      break;
    case v1::JournalRecord::kFinishedShards:
      if (!job_->dispatcher || RUBATO_MUTANT(kFinishedNotReplayed)) break;
      for (uint64_t shard : record.finished_shards().shards()) job_->dispatcher->RestoreFinished(shard);
      break;
    case v1::JournalRecord::kReturnedShards:
      if (job_->dispatcher && !RUBATO_MUTANT(kReturnNotReplayed)) ReplayReturned(record.returned_shards());
      break;
    case v1::JournalRecord::kLostWorker:
      job_->reached[record.lost_worker().task().incarnation()] = record.lost_worker();
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
    case v1::JournalRecord::kTerm:
      ReplayTerm(record.term());
      break;
    case v1::JournalRecord::kCut:
      if (!RUBATO_MUTANT(kCutNotReplayed)) job_->AddCut(record.cut());
      break;
    case v1::JournalRecord::kStopRequest:
      stop_reason_ = record.stop_request().reason();
      break;
    // Of the shell.
    case v1::JournalRecord::kValue:
    case v1::JournalRecord::kBarrier:
    case v1::JournalRecord::kHeader:
    case v1::JournalRecord::BODY_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

void Recovery::ReplayTerm(const v1::JournalTerm& term) {
  if (!RUBATO_MUTANT(kTermNotReplayed)) job_->term = std::max(job_->term, term.term());
  boot_id_ = term.boot_id();
  if (!term.has_rollback()) return;
  job_->GoBack(term);
  plan_.Clear();
  members_decided_ = 0;
  requested_quorum_ = 0;
  announced_.reset();
  policy_memory_ = term.rollback().cut().policy_memory();
  // If it is still to stop, that follows.
  stop_reason_.reset();
}

absl::Status Recovery::ReplayHeader(const v1::JournalHeader& header) {
  if (job_->placed) return absl::InvalidArgumentError("the journal has two headers of one term");
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
  if (header.job_fingerprint() == 0 || (header.train_examples() < 1 && !job_->IsOwn())) {
    return absl::InvalidArgumentError("the journal's header has no job_fingerprint or train_examples");
  }
  has_header_ = true;
  boot_id_ = header.boot_id();
  job_->job_fingerprint = header.job_fingerprint();
  job_->chunks.assign(header.chunks().begin(), header.chunks().end());
  std::set<uint32_t> servers;
  for (const v1::ChunkPlacement& chunk : header.chunks()) servers.insert(chunk.server());
  // One that has no chunk is known from its registration.
  return job_->Place({servers.begin(), servers.end()}, header.train_examples());
}

void Recovery::ReplayTask(const v1::JournalTask& task, absl::Time now) {
  const v1::TaskId& id = task.task();
  if (task.state() == v1::TaskStatus::ALIVE) {
    Membership::Arrival arrival = job_->membership.Register(id, task.info(), task.address(), now);
    if (arrival.replaced && job_->dispatcher) job_->dispatcher->Leave(*arrival.replaced);
    return;
  }
  if (task.state() == v1::TaskStatus::LEFT) {
    job_->membership.Leave(id, task.reason());
    // One that was asked to stop has a reason, and may have left data undone.
    if (id.role() == v1::TaskId::WORKER && task.reason().empty()) parts_.training->OnWorkerLeft(task.progress());
  } else {
    job_->membership.Evict(id, task.reason());
    if (id.role() == v1::TaskId::WORKER) parts_.training->OnWorkerLost();
  }
  if (job_->dispatcher && id.role() == v1::TaskId::WORKER) job_->dispatcher->Leave(id);
  if (task.has_progress()) job_->progress.OnHeartbeat(id, task.progress());
}

void Recovery::ReplayReturned(const v1::JournalReturnedShards& returned) {
  std::optional<v1::ShardPosition> trained;
  if (returned.has_trained()) trained = returned.trained();
  job_->reached.erase(returned.worker().incarnation());
  // What was wrong with it was said when it happened.
  job_->dispatcher->Return(returned.worker(), trained).IgnoreError();
}

void Recovery::ReplayPlan(const v1::JournalPlan& plan) {
  plan_ = plan.plan();
  job_->last_cut = std::max(job_->last_cut, plan_.cut().id());
  members_decided_ = plan.members_decided();
  requested_quorum_ = plan.requested_quorum();
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
