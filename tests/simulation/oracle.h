#ifndef RUBATO_TESTS_SIMULATION_ORACLE_H_
#define RUBATO_TESTS_SIMULATION_ORACLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "proto/journal.pb.h"
#include "tests/simulation/checkpoint_directory.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/cut_oracle.h"
#include "tests/simulation/history.h"
#include "tests/simulation/reference_update.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/shard_oracle.h"
#include "tests/simulation/verdict.h"

namespace rubato::simulation {

// Judges a run by the invariants I1 to I5, I7 and I8 (docs/architecture.md) from what crosses the interfaces: requests,
// answers, updates, log records, plans, journal, parts of checkpoints. Shares no code with the rules. Keeps the first
// violation. Not thread-safe.
//
// A line of history is named by the fingerprint of the job (JobDescription.fingerprint).
class Oracle {
 public:
  // A partition at work; numbered over all servers.
  struct Place {
    uint64_t job = 0;
    uint32_t partition = 0;
  };
  struct Request {
    Place place;
    bool snapshot = false;
    bool push = false;
    v1::TaskId task;
    uint64_t generation = 0;
    // To begin; the push is of the step before. Snapshot: the step that starts with the weights, or -1.
    int64_t step = 0;
    std::vector<uint32_t> chunks;
    // Of the push, by chunk as in `chunks`.
    std::vector<uint64_t> examples;
    // By when it must be answered.
    absl::Time deadline;
  };

  // `coverage` must outlive it.
  Oracle(const DataSize& data, Coverage* coverage);

  // At a server; tokens are unique.
  void PlanHolds(const Place& place, const v1::Plan& plan);
  void Restored(const Place& place, uint32_t chunk, const ChunkState& state);
  void Applied(const Place& place, uint32_t chunk, const std::vector<v1::UpdateRecord>& contributions);
  // What the update of these contributions has made of the weights' value; after Applied. Nobody has to say so.
  void Updated(const Place& place, uint32_t chunk, const Scenario& scenario,
               const std::vector<v1::UpdateRecord>& contributions, const UpdateOutcome& outcome);
  // The same of a shard of the job's table; what became of its rows shows when they are handed out or captured.
  void RowsUpdated(const Place& place, uint32_t chunk, const Scenario& scenario,
                   const std::vector<v1::UpdateRecord>& contributions);
  // The weights of these keys' rows, one after another, in an answer.
  void RowsHandedOut(const Place& place, const Scenario& scenario, const std::vector<uint64_t>& keys,
                     const std::vector<float>& weights);
  void Logged(const Place& place, const v1::UpdateRecord& record);
  void CutCaptured(const Place& place, const v1::Cut& cut, uint32_t chunk, const ChunkState& state);
  void Arrived(uint64_t token, Request request);
  void Captured(uint64_t token, uint32_t chunk);
  // `values`: of the chunks in the answer, or none if nobody knows them.
  void Answered(uint64_t token, const v1::ExchangeReply& reply, const std::vector<double>& values = {});
  // The request's stream broke, or its server died: no answer is due.
  void Forgotten(uint64_t token);
  // The server says nothing for a while.
  void Postponed(uint64_t token, absl::Duration length);
  // The partition has taken a push of `step`; notes whether it holds it back for a cut.
  void Taken(const Place& place, const v1::TaskId& worker, int64_t step, const std::vector<uint32_t>& chunks);

  // At a worker: a step begins with all of its weights, after `last` (generation, step), under `plan`.
  void StepBegins(uint64_t job, const v1::TaskId& worker, const v1::Plan& plan, std::pair<uint64_t, int64_t> last,
                  std::pair<uint64_t, int64_t> next);
  void Granted(uint64_t job, const v1::ShardGrant& grant);
  // The coordinator has lost records of these shards.
  void ForgetShards(const std::vector<uint64_t>& shards);
  // All pushes of `step` are acknowledged.
  void StepAcknowledged(uint64_t job, const v1::TaskId& worker, int64_t step);
  // A worker's open request was refused.
  void Refused(const v1::TaskId& worker, bool push, const std::string& message);

  // At the coordinator. A decision or an amendment is in the journal.
  void Decided(const v1::Plan& plan) { cuts_.Decided(plan); }
  // The coordinator has written down that a job of this name begins.
  void Began(uint64_t job) { Of(job); }
  // The job is done.
  void Done() { lines_.at(newest_).shards->Done(); }
  // A directive of this term is sent.
  void TermSpeaks(uint64_t term);
  // The job goes back; `complete` are the cuts that the journal knows, in its order.
  void RolledBack(const v1::JournalTerm& term, const std::vector<v1::CutRecord>& complete,
                  const CheckpointDirectory& directory);
  void CutRecorded(const v1::CutRecord& record, const CheckpointDirectory& directory, uint32_t chunks);

  // After every event.
  void CheckTime(absl::Time now);
  void Violate(const std::string& what) { verdict_.Note(what); }
  // Empty when there is none.
  const std::string& violation() const { return verdict_.violation(); }

  // Of the newest line of history, and all together.
  int64_t highest_begun() const;
  int64_t highest_begun_ever() const;
  v1::Plan newest_plan() const;
  uint64_t newest_generation() const;
  // Whether the job goes on after its last rollback: a plan holds somewhere.
  bool goes_on() const { return newest_plan().generation() != 0; }
  // Whether no rollback came after this line of history.
  bool IsNewest(uint64_t job) const { return !lines_.empty() && job == newest_; }
  const CutOracle& cuts() const { return cuts_; }

 private:
  struct Line {
    std::unique_ptr<History> history;
    std::unique_ptr<ShardOracle> shards;
  };

  // It must go back to the last one that can be read.
  void CheckTarget(const v1::JournalTerm::Rollback& rollback, const std::vector<v1::CutRecord>& complete,
                   const CheckpointDirectory& directory);
  Line& Of(uint64_t job);
  History& HistoryOf(uint64_t job) { return *Of(job).history; }
  void AddLine(uint64_t job, History::Start start, const v1::ShardState& shards);

  const DataSize data_;
  Coverage* const coverage_;
  Verdict verdict_;
  CutOracle cuts_;
  std::map<uint64_t, Line> lines_;  // By the job's fingerprint.
  uint64_t newest_ = 0;             // The last one.
  uint64_t term_ = 0;
  bool rolled_back_ = false;
  absl::flat_hash_map<uint64_t, Request> open_;  // By token.
  std::set<std::pair<absl::Time, uint64_t>> deadlines_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_ORACLE_H_
