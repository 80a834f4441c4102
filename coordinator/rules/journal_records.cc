#include "coordinator/rules/journal_records.h"

#include "common/task.h"
#include "coordinator/record/journal.h"

namespace rubato::coordinator {

v1::JournalRecord HeaderRecord(const JobState& job) {
  v1::JournalRecord record;
  v1::JournalHeader* header = record.mutable_header();
  header->set_format_version(kJournalFormatVersion);
  header->set_job_name(job.config.name());
  header->set_config_fingerprint(job.config_fingerprint);
  header->set_job_fingerprint(job.job_fingerprint);
  header->set_train_examples(job.train_examples);
  header->mutable_chunks()->Add(job.chunks.begin(), job.chunks.end());
  header->set_boot_id(job.boot_id);
  return record;
}

v1::JournalRecord TermRecord(uint64_t term, const std::string& boot_id) {
  v1::JournalRecord record;
  record.mutable_term()->set_term(term);
  record.mutable_term()->set_boot_id(boot_id);
  return record;
}

v1::JournalRecord StopRequestRecord(const std::string& reason) {
  v1::JournalRecord record;
  record.mutable_stop_request()->set_reason(reason);
  return record;
}

v1::JournalRecord TaskRecord(const JobState& job, const v1::TaskId& task) {
  v1::JournalRecord record;
  v1::JournalTask* journal = record.mutable_task();
  *journal->mutable_task() = task;
  const Member* member = job.membership.Find(task.role(), task.index());
  if (member != nullptr && SameTask(member->id, task)) {
    journal->set_state(member->state);
    journal->set_address(member->address);
    *journal->mutable_info() = member->info;
    journal->set_reason(member->reason);
  } else {
    journal->set_state(v1::TaskStatus::EVICTED);
    journal->set_reason("replaced by a new incarnation");
  }
  const v1::WorkerProgress* progress = job.progress.Find(task);
  if (progress != nullptr && journal->state() != v1::TaskStatus::ALIVE) *journal->mutable_progress() = *progress;
  return record;
}

v1::JournalRecord PhaseRecord(const JobState& job, absl::Time since) {
  v1::JournalRecord record;
  record.mutable_phase()->set_phase(job.phase);
  record.mutable_phase()->set_since_unix_seconds(absl::ToDoubleSeconds(since - absl::UnixEpoch()));
  record.mutable_phase()->set_error(job.end.error());
  return record;
}

v1::JournalRecord AnnounceRecord(uint64_t generation, const PlanChange& change, const std::string& policy_memory) {
  v1::JournalRecord record;
  v1::JournalAnnounce* announce = record.mutable_announce();
  announce->set_generation(generation);
  announce->set_mode(change.mode);
  announce->set_staleness_bound(change.staleness_bound);
  announce->set_quorum(change.quorum);
  announce->set_learning_rate_scale(change.learning_rate_scale);
  announce->mutable_batch_sizes()->insert(change.batch_sizes.begin(), change.batch_sizes.end());
  announce->set_sync_every(change.sync_every);
  if (change.momentum) announce->set_momentum(*change.momentum);
  if (change.compress) announce->set_compress(*change.compress);
  announce->set_reason(change.reason);
  announce->set_policy_memory(policy_memory);
  return record;
}

PlanChange ChangeOf(const v1::JournalAnnounce& announce) {
  PlanChange change;
  change.mode = announce.mode();
  change.staleness_bound = announce.staleness_bound();
  change.quorum = announce.quorum();
  change.learning_rate_scale = announce.learning_rate_scale();
  change.batch_sizes = {announce.batch_sizes().begin(), announce.batch_sizes().end()};
  change.sync_every = announce.sync_every();
  if (announce.has_momentum()) change.momentum = announce.momentum();
  if (announce.has_compress()) change.compress = announce.compress();
  change.reason = announce.reason();
  return change;
}

}  // namespace rubato::coordinator
