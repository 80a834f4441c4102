#include "coordinator/rules/cut_keeper.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/mutants.h"
#include "common/task.h"
#include "coordinator/record/run_record.h"
#include "coordinator/rules/checkpoint_round.h"

namespace rubato::coordinator {
namespace {

std::pair<int, uint32_t> KeyOf(const v1::TaskId& task) { return {task.role(), task.index()}; }

}  // namespace

void CutKeeper::Begin(absl::Time now) {
  last_begun_ = now;
  last_step_ = job_->held_plan.first_step();
}

bool CutKeeper::IsDue(absl::Time now) const {
  if (!tickets_.empty()) return true;
  const v1::CheckpointConfig& config = job_->config.checkpoint();
  if (config.every_steps() > 0 && job_->progress.Totals().step - last_step_ >= config.every_steps()) return true;
  return config.every_seconds() > 0 && now - last_begun_ >= absl::Seconds(config.every_seconds());
}

void CutKeeper::Continue(absl::Time now) {
  if (in_progress_) {
    // Said once, and again when it has changed.
    const std::string missing = absl::StrJoin(Missing(), ", ");
    if (absl::StrContains(missing, ": ") && std::exchange(in_progress_->told_problem, missing) != missing) {
      out_->Log('W', absl::StrCat("checkpoint waits for ", missing));
    }
    return;
  }
  if (!stop_requested_ && IsDue(now)) BeginCut("", now);
}

void CutKeeper::Request(uint64_t ticket, absl::Time now) {
  tickets_.push_back(ticket);
  if (!in_progress_ && !stop_requested_) BeginCut("", now);
}

void CutKeeper::RequestStop(absl::Time now) {
  stop_requested_ = true;
  BeginLastCut(now);
}

void CutKeeper::BeginLastCut(absl::Time now) {
  const bool taken = std::any_of(job_->cuts.begin(), job_->cuts.end(),
                                 [](const v1::CutRecord& cut) { return cut.cut().name() == kStopCheckpoint; });
  BeginCut(taken ? "" : kStopCheckpoint, now);
}

void CutKeeper::BeginCut(const std::string& name, absl::Time now) {
  v1::Cut cut;
  cut.set_id(++job_->last_cut);
  cut.set_name(name);
  // A cut that this one takes the place of has been waited for by these.
  if (in_progress_) tickets_.insert(tickets_.end(), in_progress_->tickets.begin(), in_progress_->tickets.end());
  in_progress_ = InProgress{.cut = cut, .begun = now, .tickets = std::exchange(tickets_, {})};
  last_begun_ = now;
  last_step_ = job_->progress.Totals().step;
  if (job_->dispatcher) job_->dispatcher->BeginCut();
  plans_->Apply(job_->plan_maker->RequestCut(cut, now), now);
}

void CutKeeper::OnProgress(const v1::TaskId& task, const v1::CutProgress& progress) {
  if (!in_progress_) return;
  if (progress.id() != in_progress_->cut.id() && !RUBATO_MUTANT(kCutTakesOldProgress)) return;
  v1::CutProgress& known = in_progress_->progress[KeyOf(task)];
  const bool entered = task.role() == v1::TaskId::WORKER && progress.entered() && !known.entered();
  known = progress;
  if (!entered || !job_->dispatcher || RUBATO_MUTANT(kCutForgetsPositions)) return;
  absl::Status noted = job_->dispatcher->NoteCut(task, {progress.shards().begin(), progress.shards().end()});
  if (noted.ok()) return;
  // Without its position the cut cannot be complete.
  known.set_entered(false);
  known.set_problem(std::string(noted.message()));
}

void CutKeeper::OnShardRequest(const v1::TaskId& worker) {
  if (!in_progress_ || !in_progress_->plan || !job_->dispatcher) return;
  const auto& members = in_progress_->plan->members();
  const bool member =
      std::any_of(members.begin(), members.end(), [&](const v1::TaskId& other) { return SameTask(other, worker); });
  // It comes with a later plan: nothing that it does is in the cut. With no shards there is nothing to refuse.
  if (!member) job_->dispatcher->NoteCut(worker, {}).IgnoreError();
}

bool CutKeeper::Wrote(const v1::TaskId& task) const {
  auto found = in_progress_->progress.find(KeyOf(task));
  if (found == in_progress_->progress.end() || !found->second.written()) return false;
  return task.role() == v1::TaskId::SERVER || found->second.entered();
}

std::vector<std::string> CutKeeper::Missing() const {
  std::vector<std::string> missing;
  auto add = [&](const Member* member) {
    if (member == nullptr || Wrote(member->id)) return;
    auto found = in_progress_->progress.find(KeyOf(member->id));
    const bool known = found != in_progress_->progress.end() && !found->second.problem().empty();
    missing.push_back(known ? absl::StrCat(TaskName(member->id), ": ", found->second.problem()) : TaskName(member->id));
  };
  for (uint32_t server : job_->servers) add(job_->membership.Find(v1::TaskId::SERVER, server));
  if (!in_progress_->plan || RUBATO_MUTANT(kCutForgetsWorkers)) return missing;
  for (const v1::TaskId& worker : in_progress_->plan->members()) add(job_->membership.FindAlive(worker));
  if (!job_->dispatcher) return missing;
  for (const v1::TaskId& worker : job_->dispatcher->gone()) {
    missing.push_back(absl::StrCat("the servers' word on how far ", TaskName(worker), " came in its data"));
  }
  return missing;
}

void CutKeeper::NotePlan() {
  if (!in_progress_ || in_progress_->plan || job_->held_plan.cut().id() != in_progress_->cut.id()) return;
  in_progress_->plan = job_->held_plan;
  in_progress_->cut = job_->held_plan.cut();
  last_step_ = job_->held_plan.first_step();
}

bool CutKeeper::AwaitsPositions() const {
  if (!in_progress_ || !in_progress_->plan || !job_->dispatcher) return false;
  const auto& members = in_progress_->plan->members();
  return std::any_of(members.begin(), members.end(), [this](const v1::TaskId& member) {
    if (job_->membership.FindAlive(member) == nullptr || job_->dispatcher->HasSpoken(member)) return false;
    // One whose word makes no sense keeps the cut from being complete, and nothing else.
    auto said = in_progress_->progress.find(KeyOf(member));
    return said == in_progress_->progress.end() || said->second.problem().empty();
  });
}

bool CutKeeper::LacksPositionOf(const v1::TaskId& worker, int64_t step) const {
  if (!in_progress_ || !in_progress_->plan || job_->dispatcher->HasSpoken(worker)) return false;
  return step >= in_progress_->plan->first_step();
}

void CutKeeper::BeginAgain(const std::string& lost, absl::Time now) {
  const std::string name = in_progress_->cut.name();
  out_->Log('W', absl::StrCat("checkpoint ", name, " is given up, and another one begun: ", lost,
                              " was lost before it said how far it was in its data"));
  stop_requested_ ? BeginLastCut(now) : BeginCut("", now);
}

void CutKeeper::CompleteWhenWritten(absl::Time now) {
  if (!in_progress_ || !in_progress_->plan) return;
  if (!Missing().empty() && !RUBATO_MUTANT(kCutBeforeAllParts)) return;
  Complete(now);
}

v1::CutRecord CutKeeper::MakeRecord(absl::Time now) const {
  v1::CutRecord record;
  record.set_format_version(kCutRecordFormatVersion);
  *record.mutable_cut() = in_progress_->cut;
  *record.mutable_plan() = *in_progress_->plan;
  record.set_members_decided(static_cast<uint32_t>(in_progress_->plan->decided_members_size()));
  record.set_policy_memory(plans_->policy_memory());
  if (job_->dispatcher) {
    *record.mutable_shards() = job_->dispatcher->CutState();
    record.set_examples(job_->dispatcher->ExamplesIn(record.shards()));
  } else if (job_->IsOwn()) {
    // For status alone.
    record.set_examples(job_->progress.Totals().examples);
    record.set_epoch(job_->progress.Totals().epoch);
  } else {
    record.set_examples(in_progress_->plan->first_example());
  }
  if (job_->train_examples > 0) {
    record.set_epoch(static_cast<double>(record.examples()) / static_cast<double>(job_->train_examples));
  }
  record.set_seconds(job_->Seconds(now));
  for (uint32_t server : job_->servers) record.add_servers(server);
  for (const auto& [key, progress] : in_progress_->progress) {
    if (key.first == v1::TaskId::WORKER && progress.written() && progress.bytes() > 0) record.add_workers(key.second);
  }
  return record;
}

void CutKeeper::Complete(absl::Time now) {
  const v1::CutRecord record = MakeRecord(now);
  v1::JournalRecord journal;
  *journal.mutable_cut() = record;
  out_->Journal(std::move(journal), true);
  out_->Add(WriteCutRecord{record});
  int64_t bytes = 0;
  for (const auto& [key, progress] : in_progress_->progress) bytes += progress.bytes();
  const double seconds = absl::ToDoubleSeconds(now - in_progress_->begun);
  out_->Metrics(CheckpointLine(job_->Seconds(now), record, bytes, seconds));
  out_->Log('I', absl::StrFormat("checkpoint %s is complete: all steps before %d, %.1f MB, %.1f s", record.cut().name(),
                                 record.plan().first_step(), static_cast<double>(bytes) / 1e6, seconds));
  job_->counts.set_checkpoints_total(job_->counts.checkpoints_total() + 1);
  v1::WriteCheckpointNowReply reply;
  *reply.mutable_cut() = record.cut();
  reply.set_step(record.plan().first_step());
  reply.set_seconds(seconds);
  for (uint64_t ticket : in_progress_->tickets) out_->Add(AnswerCheckpoint{ticket, reply});
  // None is begun after a stop was asked for but the last one, which takes the place of any other.
  if (stop_requested_) stopped_in_ = record.cut().name();
  in_progress_.reset();
  last_complete_ = now;
  job_->AddCut(record);
  TellWhichToKeep();
}

void CutKeeper::TellWhichToKeep() {
  v1::Directive directive;
  v1::KeepCheckpoints* keep = directive.mutable_keep_checkpoints();
  keep->add_names(kFirstCheckpoint);
  for (const v1::CutRecord& cut : job_->cuts) keep->add_names(cut.cut().name());
  out_->SendToAll(v1::TaskId::SERVER, directive);
  out_->SendToAll(v1::TaskId::WORKER, directive);
  out_->Add(RemoveCutRecords{{keep->names().begin(), keep->names().end()}});
}

void CutKeeper::Drop(const std::string& why) {
  std::vector<uint64_t> tickets = std::exchange(tickets_, {});
  if (in_progress_) tickets.insert(tickets.end(), in_progress_->tickets.begin(), in_progress_->tickets.end());
  in_progress_.reset();
  for (uint64_t ticket : tickets) {
    out_->Add(AnswerCheckpoint{ticket, absl::AbortedError(absl::StrCat("the checkpoint was given up: ", why))});
  }
}

std::string CutKeeper::StopWaitsFor() const {
  if (!stop_requested_ || !in_progress_) return "";
  return absl::StrCat(
      absl::StrJoin(Missing(), ", "), " to write ",
      in_progress_->cut.name().empty() ? "the last checkpoint" : absl::StrCat("checkpoint ", in_progress_->cut.name()));
}

void CutKeeper::Describe(absl::Time now, v1::CheckpointStatus* status) const {
  if (!job_->cuts.empty()) {
    const v1::CutRecord& last = job_->cuts.back();
    status->set_last(last.cut().name());
    status->set_last_step(last.plan().first_step());
    const double since = last_complete_ == absl::InfinitePast() ? job_->Seconds(now) - last.seconds()
                                                                : absl::ToDoubleSeconds(now - last_complete_);
    status->set_seconds_since_last(std::max(0.0, since));
  }
  status->set_rollback_reason(job_->rollback_reason);
  if (!in_progress_) return;
  const std::string& name = in_progress_->cut.name();
  status->set_in_progress(name.empty() ? "the next step's" : name);
  status->set_waiting_for(absl::StrJoin(Missing(), ", "));
}

}  // namespace rubato::coordinator
