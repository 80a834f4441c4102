#include "coordinator/rules/rollback.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/mutants.h"
#include "common/random.h"
#include "coordinator/record/run_record.h"
#include "coordinator/rules/checkpoint_round.h"
#include "coordinator/rules/journal_records.h"

namespace rubato::coordinator {
namespace {

// The job's name on the data path in another term; not 0.
uint64_t NextFingerprint(uint64_t fingerprint, uint64_t term) {
  const uint64_t x = MixBits(fingerprint + term * 0x9e3779b97f4a7c15u);
  return x == 0 ? 1 : x;
}

// Of a client's job that has no cut yet: its weights as they were assigned.
v1::CutRecord Beginning(const JobState& job) {
  v1::CutRecord record;
  record.mutable_cut()->set_name(kFirstCheckpoint);
  v1::Plan& plan = *record.mutable_plan();
  plan.set_mode(job.config.consistency().mode());
  plan.set_staleness_bound(job.config.consistency().staleness_bound());
  plan.set_quorum(job.config.consistency().quorum());
  plan.set_learning_rate_scale(1);
  for (uint32_t server : job.servers) record.add_servers(server);
  return record;
}

// Whether workers may have changed the weights that one of them assigned.
bool HasAssignedWeights(const JobState& job) {
  return job.config.model().has_manifest() && job.config.training().start_from().empty() &&
         job.training_start != absl::InfiniteFuture();
}

}  // namespace

void Rollback::Begin(const std::string& reason, absl::Time now) {
  if (!job_->replaced) GoBack(reason, now);
}

bool Rollback::BeginFromEarlier(const std::string& reason, absl::Time now) {
  if (job_->replaced) return true;
  if (!job_->restore || job_->cuts.size() < 2) return false;
  job_->cuts.pop_back();
  GoBack(absl::StrCat("checkpoint ", job_->restore->cut().name(), " cannot be read: ", reason), now);
  return true;
}

void Rollback::GoBack(const std::string& reason, absl::Time now) {
  job_->replaced = true;
  cuts_->Drop(reason);
  plans_->AbortSwitches(absl::StrCat(reason, "; the job goes back to its last checkpoint"));
  v1::JournalTerm term;
  term.set_term(RUBATO_MUTANT(kRollbackKeepsTerm) ? job_->term : job_->term + 1);
  term.set_boot_id(job_->boot_id);
  v1::JournalTerm::Rollback* rollback = term.mutable_rollback();
  if (!job_->cuts.empty()) {
    *rollback->mutable_cut() = job_->cuts.back();
  } else if (HasAssignedWeights(*job_)) {
    *rollback->mutable_cut() = Beginning(*job_);
  }
  const int64_t step = rollback->cut().plan().first_step();
  rollback->set_job_fingerprint(NextFingerprint(job_->job_fingerprint, term.term()));
  if (RUBATO_MUTANT(kRollbackKeepsName)) rollback->set_job_fingerprint(job_->job_fingerprint);
  rollback->set_last_generation(job_->LastGeneration());
  if (RUBATO_MUTANT(kRollbackForgetsGenerations)) rollback->clear_last_generation();
  rollback->set_last_cut(job_->last_cut);
  rollback->set_reason(reason);
  rollback->set_rollbacks_total(job_->counts.rollbacks_total() + 1);
  // Nothing was trained while nobody was there: the time goes on from where the job does.
  if (job_->training_start != absl::InfiniteFuture()) {
    const absl::Time start = job_->Ended() ? now - absl::Seconds(rollback->cut().seconds()) : job_->training_start;
    rollback->set_training_start_unix_seconds(absl::ToDoubleSeconds(start - absl::UnixEpoch()));
    out_->Metrics(RollbackLine(absl::ToDoubleSeconds(now - start), term));
  }
  out_->Log(
      'W', absl::StrCat(reason, "; the job goes back to ",
                        rollback->has_cut() ? absl::StrCat("checkpoint ", rollback->cut().cut().name(), ", step ", step)
                                            : "its beginning: there is no checkpoint yet",
                        " (term ", term.term(), ")"));
  v1::JournalRecord record;
  *record.mutable_term() = term;
  out_->Journal(std::move(record), true);
  if (job_->stop_requested && !job_->Ended()) out_->Journal(StopRequestRecord(*job_->stop_requested), true);
  job_->term = term.term();
  v1::Directive directive;
  directive.mutable_restart()->set_reason(reason);
  for (v1::TaskId::Role role : {v1::TaskId::SERVER, v1::TaskId::WORKER, v1::TaskId::EVALUATOR}) {
    out_->SendToAll(role, directive);
  }
  for (const auto& [id, worker] : job_->done_workers) out_->Send(worker, directive);
  out_->Add(RestartCore{});
}

}  // namespace rubato::coordinator
