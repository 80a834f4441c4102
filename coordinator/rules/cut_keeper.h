#ifndef RUBATO_COORDINATOR_RULES_CUT_KEEPER_H_
#define RUBATO_COORDINATOR_RULES_CUT_KEEPER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"
#include "coordinator/rules/plan_keeper.h"
#include "proto/checkpoint.pb.h"

namespace rubato::coordinator {

// CutRecord.format_version that this program writes.
inline constexpr uint32_t kCutRecordFormatVersion = 1;

// Checkpoints of a job that trains. Has a cut begun when one is due or asked for, hears from heartbeats how far servers
// and workers are with their parts, and makes it a checkpoint when all parts are on disks: the record in the journal is
// the commit. One cut at a time. A member that is lost has no part in it any more, and the cut goes on without; a
// server that is lost ends the cut with everything else of its term. Pure.
class CutKeeper {
 public:
  // All outlive it.
  CutKeeper(JobState* job, Outbox* out, PlanKeeper* plans) : job_(job), out_(out), plans_(plans) {}

  // TRAINING begins, or goes on after a restart of the coordinator.
  void Begin(absl::Time now);
  // Each tick of TRAINING: begins a cut that is due.
  void Continue(absl::Time now);
  // An operator waits for a checkpoint: of the cut that is begun next, or at once when none is being made.
  void Request(uint64_t ticket, absl::Time now);
  // The next cut is the last one. It is called "stopped", unless the job went on from a checkpoint of that name, which
  // has to stay whole until this one is; then by its step.
  void RequestStop(absl::Time now);
  // What the task has said of its part in a heartbeat.
  void OnProgress(const v1::TaskId& task, const v1::CutProgress& progress);
  // Before a request for a shard is answered. How far the worker is with the cut has been said: on its stream a
  // heartbeat goes before what was queued, and one is sent as soon as it has entered the cut's plan.
  void OnShardRequest(const v1::TaskId& worker);
  // After each event: all servers may hold the cut's plan now.
  void NotePlan();
  // And all parts may be written.
  void CompleteWhenWritten(absl::Time now);
  // DYNAMIC dispatch: whether some member is to say how far it is in its shards.
  bool AwaitsPositions() const;
  // Whether nobody will know how far this worker, which is lost after `step`, was when it entered the cut's plan.
  bool LacksPositionOf(const v1::TaskId& worker, int64_t step) const;
  // So another cut takes its place.
  void BeginAgain(const std::string& lost, absl::Time now);
  // The job ends, or goes back: nobody gets what it waits for.
  void Drop(const std::string& why);

  // The checkpoint that the stop has written; empty when it has not.
  const std::string& stopped_in() const { return stopped_in_; }
  // For whom the last cut waits, as text; empty when it does not.
  std::string StopWaitsFor() const;
  void Describe(absl::Time now, v1::CheckpointStatus* status) const;

 private:
  struct InProgress {
    v1::Cut cut;
    absl::Time begun;
    std::vector<uint64_t> tickets;
    // Once all servers hold it.
    std::optional<v1::Plan> plan;
    // What each task said last, by role and index; workers' positions are the first ones that are complete.
    std::map<std::pair<int, uint32_t>, v1::CutProgress> progress;
    std::string told_problem;
  };

  bool IsDue(absl::Time now) const;
  // Empty: its step is its name.
  void BeginCut(const std::string& name, absl::Time now);
  void BeginLastCut(absl::Time now);
  bool Wrote(const v1::TaskId& task) const;
  // Those whose parts are missing, with what went wrong there.
  std::vector<std::string> Missing() const;
  v1::CutRecord MakeRecord(absl::Time now) const;
  void Complete(absl::Time now);
  void TellWhichToKeep();

  JobState* const job_;
  Outbox* const out_;
  PlanKeeper* const plans_;
  std::optional<InProgress> in_progress_;
  // Since the last cut was begun, or training.
  int64_t last_step_ = 0;
  absl::Time last_begun_;
  absl::Time last_complete_ = absl::InfinitePast();
  std::vector<uint64_t> tickets_;
  bool stop_requested_ = false;
  std::string stopped_in_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_CUT_KEEPER_H_
