#include "tests/simulation/oracle.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/task.h"
#include "tests/simulation/reference_rows.h"
#include "tests/simulation/sim_push.h"

namespace rubato::simulation {

using Reply = v1::ExchangeReply;

Oracle::Oracle(const DataSize& data, Coverage* coverage)
    : data_(data), coverage_(coverage), cuts_(&verdict_, coverage) {}

void Oracle::AddLine(uint64_t job, History::Start start, const v1::ShardState& shards) {
  if (!lines_.empty()) {
    const History& before = *lines_.at(newest_).history;
    start.last_generation = std::max(before.start().last_generation, before.newest_plan().generation());
    start.old_members = before.start().old_members;
    start.old_members.insert(before.members().begin(), before.members().end());
  }
  Line& line = lines_[job];
  line.history = std::make_unique<History>(std::move(start), &verdict_);
  line.shards = std::make_unique<ShardOracle>(shards, data_, &verdict_);
  newest_ = job;
}

Oracle::Line& Oracle::Of(uint64_t job) {
  auto it = lines_.find(job);
  if (it != lines_.end()) return it->second;
  // A coordinator that had not yet written anything down begins again with another name.
  if (rolled_back_) Violate(absl::StrCat("I7: tasks go on with job ", job, ", of which the journal does not know"));
  AddLine(job, {}, {});
  return lines_.at(job);
}

void Oracle::PlanHolds(const Place& place, const v1::Plan& plan) {
  HistoryOf(place.job).PlanHolds(place.partition, plan);
}

void Oracle::Restored(const Place& place, uint32_t chunk, const ChunkState& state) {
  if (!state.rows.empty()) coverage_->Note(Reached::kRowsRestored);
  if (!state.counts.empty()) coverage_->Note(Reached::kPushCountsRestored);
  HistoryOf(place.job).Restored(chunk, state);
}

void Oracle::Applied(const Place& place, uint32_t chunk, const std::vector<v1::UpdateRecord>& contributions) {
  HistoryOf(place.job).Applied(place.partition, chunk, contributions);
}

void Oracle::Updated(const Place& place, uint32_t chunk, const Scenario& scenario,
                     const std::vector<v1::UpdateRecord>& contributions, const UpdateOutcome& outcome) {
  History& history = HistoryOf(place.job);
  const double scale = contributions.empty() ? 1 : history.LearningRateScale(contributions.front().generation());
  const ReferenceUpdate reference =
      UpdateByReference(scenario, chunk, history.chunk(chunk).state().value, scale, contributions);
  if (reference.due.disagreement) coverage_->Note(Reached::kHyperparametersDiffer);
  if (reference.by_later_member) coverage_->Note(Reached::kHyperparametersOfLaterMember);
  if (scenario.mean && reference.of_nothing) coverage_->Note(Reached::kMeanOfNothing);
  if (scenario.mean && reference.partly_absent) coverage_->Note(Reached::kMeanOfSome);
  history.Updated(chunk, outcome, reference.due);
}

void Oracle::RowsUpdated(const Place& place, uint32_t chunk, const Scenario& scenario,
                         const std::vector<v1::UpdateRecord>& contributions) {
  History& history = HistoryOf(place.job);
  const double scale = contributions.empty() ? 1 : history.LearningRateScale(contributions.front().generation());
  const RowsUpdate update =
      UpdateRowsByReference(scenario, chunk, scale, contributions, &history.RowsOf(chunk), &history.CountsOf(chunk));
  if (update.has_key_of_several) coverage_->Note(Reached::kKeyOfSeveralMembers);
  if (update.has_expired) coverage_->Note(Reached::kRowExpired);
  if (update.has_row_too_many) coverage_->Note(Reached::kRowTooMany);
  if (update.has_key_without_row) coverage_->Note(Reached::kKeyNotAdmitted);
  if (update.has_admitted) coverage_->Note(Reached::kKeyAdmitted);
}

void Oracle::RowsHandedOut(const Place& place, const Scenario& scenario, const std::vector<uint64_t>& keys,
                           const std::vector<float>& weights) {
  History& history = HistoryOf(place.job);
  auto at = weights.begin();
  for (const uint64_t key : keys) {
    const Rows& rows = history.RowsOf(ShardChunkOf(scenario, key));
    const auto row = rows.find(key);
    if (row == rows.end()) coverage_->Note(Reached::kMissingRowRead);
    const std::vector<float> due = row == rows.end() ? InitialRow(scenario, key) : row->second;
    if (!std::equal(at, at + kRowDimension, due.begin())) {
      Violate(absl::StrCat("I1: the row of key ", key, " is handed out as ", absl::StrJoin(at, at + kRowDimension, ","),
                           " where ", absl::StrJoin(due.begin(), due.begin() + kRowDimension, ","), " is due"));
    }
    at += kRowDimension;
  }
}

void Oracle::Logged(const Place& place, const v1::UpdateRecord& record) {
  HistoryOf(place.job).Logged(place.partition, record);
  Of(place.job).shards->Trained(record);
}

void Oracle::CutCaptured(const Place& place, const v1::Cut& cut, uint32_t chunk, const ChunkState& state) {
  History& history = HistoryOf(place.job);
  history.CutCaptured(place.partition, chunk, cut, state);
  cuts_.Captured(history.plans(place.partition), history.chunk(chunk), chunk);
}

void Oracle::Taken(const Place& place, const v1::TaskId& worker, int64_t step, const std::vector<uint32_t>& chunks) {
  for (uint32_t chunk : chunks) {
    if (!HistoryOf(place.job).HeldForCut(place.partition, chunk, worker, step)) continue;
    coverage_->Note(Reached::kPushHeldForCut);
  }
}

void Oracle::Arrived(uint64_t token, Request request) {
  History& history = HistoryOf(request.place.job);
  for (size_t i = 0; i < request.chunks.size() && !request.snapshot; ++i) {
    history.Asked(request.chunks[i], request.task, request.generation, request.step, request.push);
    if (request.push) history.Pushed(request.chunks[i], request.task, request.step - 1, request.examples.at(i));
  }
  deadlines_.insert({request.deadline, token});
  open_[token] = std::move(request);
}

void Oracle::Captured(uint64_t token, uint32_t chunk) {
  auto it = open_.find(token);
  if (it == open_.end()) return Violate("I4: a snapshot was taken for a request that is not open");
  const Request& request = it->second;
  if (request.step >= 0) HistoryOf(request.place.job).Captured(request.place.partition, chunk, request.step);
}

void Oracle::Forgotten(uint64_t token) {
  auto it = open_.find(token);
  if (it == open_.end()) return;
  deadlines_.erase({it->second.deadline, token});
  open_.erase(it);
}

void Oracle::Postponed(uint64_t token, absl::Duration length) {
  auto it = open_.find(token);
  if (it == open_.end()) return;
  deadlines_.erase({it->second.deadline, token});
  it->second.deadline += length;
  deadlines_.insert({it->second.deadline, token});
}

void Oracle::Answered(uint64_t token, const Reply& reply, const std::vector<double>& values) {
  auto it = open_.find(token);
  if (it == open_.end()) return Violate("I4: a request was answered twice, or without being asked");
  const Request request = std::move(it->second);
  deadlines_.erase({request.deadline, token});
  open_.erase(it);
  if (request.snapshot) return;
  History& history = HistoryOf(request.place.job);
  const bool acknowledged = request.push && reply.push() != Reply::PUSH_NONE && reply.push() != Reply::PUSH_PENDING &&
                            reply.outcome() != Reply::REFUSED;
  for (uint32_t chunk : request.chunks) {
    if (!acknowledged || history.Done(chunk, request.task, request.step - 1)) continue;
    Violate(absl::StrCat("I3: the push of step ", request.step - 1, " by ", TaskName(request.task), " to chunk ", chunk,
                         " is acknowledged and was not done"));
  }
  if (reply.outcome() != Reply::OK) return;
  for (int i = 0; i < reply.chunks_size(); ++i) {
    const v1::ChunkWeights& weights = reply.chunks(i);
    history.HandedOut(weights.chunk(), weights.version(),
                      values.empty() ? std::nullopt : std::optional<double>(values.at(i)));
  }
  history.Began(request.place.partition, request.chunks, request.task, request.generation, request.step);
}

void Oracle::StepBegins(uint64_t job, const v1::TaskId& worker, const v1::Plan& plan, std::pair<uint64_t, int64_t> last,
                        std::pair<uint64_t, int64_t> next) {
  HistoryOf(job).StepBegins(worker, last, next);
  if (plan.has_cut()) cuts_.Entered(plan.cut(), worker);
}

void Oracle::Granted(uint64_t job, const v1::ShardGrant& grant) {
  const ShardOracle& shards = *Of(job).shards;
  const int64_t restored = shards.Restored(grant.shard());
  if (restored > shards.BeginOf(grant.shard())) coverage_->Note(Reached::kBegunShardGranted);
  if (grant.begin() > restored) coverage_->Note(Reached::kRestOfShardGranted);
}

void Oracle::ForgetShards(const std::vector<uint64_t>& shards) {
  if (lines_.empty()) return;
  for (uint64_t shard : shards) lines_.at(newest_).shards->Forget(shard);
}

void Oracle::StepAcknowledged(uint64_t job, const v1::TaskId& worker, int64_t step) {
  HistoryOf(job).StepAcknowledged(worker, step);
}

void Oracle::Refused(const v1::TaskId& worker, bool push, const std::string& message) {
  Violate(absl::StrCat(push ? "I3: the open push of " : "I4: the open pull of ", TaskName(worker),
                       " was refused: ", message));
}

void Oracle::TermSpeaks(uint64_t term) {
  if (term < term_) Violate(absl::StrCat("I7: the coordinator speaks in term ", term, " after term ", term_));
  term_ = term;
}

void Oracle::CheckTarget(const v1::JournalTerm::Rollback& rollback, const std::vector<v1::CutRecord>& complete,
                         const CheckpointDirectory& directory) {
  const uint64_t target = rollback.cut().cut().id();
  for (auto cut = complete.rbegin(); cut != complete.rend(); ++cut) {
    if (cut->cut().id() == target) return;
    if (!directory.ReadChunks(cut->cut()).has_value()) continue;
    return Violate(absl::StrCat("I7: the job goes back to cut ", target, "; the last one is ", cut->cut().id()));
  }
  if (!complete.empty()) Violate("I7: the job goes back to its beginning; there were complete cuts");
}

void Oracle::RolledBack(const v1::JournalTerm& term, const std::vector<v1::CutRecord>& complete,
                        const CheckpointDirectory& directory) {
  if (term.term() <= term_) Violate(absl::StrCat("I7: the rollback has term ", term.term(), " after term ", term_));
  term_ = term.term();
  rolled_back_ = true;
  cuts_.RolledBack();
  const v1::JournalTerm::Rollback& rollback = term.rollback();
  CheckTarget(rollback, complete, directory);
  if (lines_.contains(rollback.job_fingerprint())) Violate("I7: the job has the same name after the rollback");
  coverage_->Note(rollback.has_cut() ? Reached::kRollbackToCut : Reached::kRollbackToBeginning);
  History::Start start;
  if (rollback.has_cut()) {
    start.first_step = rollback.cut().plan().first_step();
    start.restored = cuts_.StatesOf(rollback.cut().cut().id());
  }
  AddLine(rollback.job_fingerprint(), std::move(start), rollback.cut().shards());
}

void Oracle::CutRecorded(const v1::CutRecord& record, const CheckpointDirectory& directory, uint32_t chunks) {
  if (cuts_.FindComplete(record.cut().id()) != nullptr) return;
  cuts_.Recorded(record, directory, chunks);
  if (!lines_.empty()) lines_.at(newest_).shards->Recorded(record);
}

void Oracle::CheckTime(absl::Time now) {
  for (const auto& [job, line] : lines_) line.history->CheckSettled();
  if (deadlines_.empty() || deadlines_.begin()->first >= now) return;
  const Request& late = open_[deadlines_.begin()->second];
  Violate(absl::StrCat("I4: ", TaskName(late.task), " got no answer about step ", late.step, " from partition ",
                       late.place.partition));
}

int64_t Oracle::highest_begun() const { return lines_.empty() ? -1 : lines_.at(newest_).history->highest_begun(); }

int64_t Oracle::highest_begun_ever() const {
  int64_t highest = -1;
  for (const auto& [job, line] : lines_) highest = std::max(highest, line.history->highest_begun());
  return highest;
}

v1::Plan Oracle::newest_plan() const { return lines_.empty() ? v1::Plan() : lines_.at(newest_).history->newest_plan(); }

uint64_t Oracle::newest_generation() const {
  uint64_t newest = 0;
  for (const auto& [job, line] : lines_) newest = std::max(newest, line.history->newest_plan().generation());
  return newest;
}

}  // namespace rubato::simulation
