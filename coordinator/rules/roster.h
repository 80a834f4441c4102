#ifndef RUBATO_COORDINATOR_RULES_ROSTER_H_
#define RUBATO_COORDINATOR_RULES_ROSTER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/rules/checkpoint_round.h"
#include "coordinator/rules/cut_keeper.h"
#include "coordinator/rules/evaluation_keeper.h"
#include "coordinator/rules/job_end.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"
#include "coordinator/rules/plan_keeper.h"
#include "coordinator/rules/rollback.h"
#include "coordinator/rules/starting_phase.h"
#include "coordinator/rules/training_phase.h"

namespace rubato::coordinator {

// How tasks come and go, and what follows for the job: registration, heartbeats, leases, goodbyes. Pure.
class Roster {
 public:
  // All outlive the roster.
  struct Parts {
    JobState* job;
    Outbox* out;
    PlanKeeper* plans;
    EvaluationKeeper* evaluations;
    CutKeeper* cuts;
    Rollback* rollback;
    CheckpointRound* checkpoints;
    StartingPhase* starting;
    TrainingPhase* training;
    JobEnd* end;
  };
  explicit Roster(const Parts& parts) : parts_(parts), job_(parts.job), out_(parts.out) {}

  // `peer` is gRPC's name of the sender's address.
  void OnRegister(const v1::TaskMessage& message, absl::string_view peer, absl::Time now);
  void OnHeartbeat(Member* member, const v1::Heartbeat& heartbeat, absl::Time now);
  void OnLeaving(const v1::TaskId& task, const v1::Leaving& leaving, absl::Time now);
  void OnDisconnect(const v1::TaskId& task, absl::Time now);
  // A message of an incarnation that is not alive.
  void OnStranger(const v1::TaskId& task);
  void CheckLeases(absl::Time now);

 private:
  void Refuse(const v1::TaskId& task, absl::string_view reason);
  // It belongs to the time before a rollback.
  void TellRestart(const v1::TaskId& task);
  // A part of the weights is there and nowhere else.
  bool HoldsChunks(const v1::TaskId& task) const;
  // Whether there is nothing to do for this worker unless the job goes back: it says so, or comes when all is done.
  bool HasDoneItsPart(const v1::TaskId& worker, const v1::Register& info) const;
  void OnDoneWorker(const v1::TaskId& worker, const v1::Register& info, absl::Time now);
  void OnNew(const v1::TaskId& task, absl::Time now);
  void SendRegistered(const v1::TaskId& task, const std::string& waiting_for);
  void Greet(const v1::TaskId& task, absl::Time now);
  // The server cannot read what the job goes on from.
  void OnCannotRestore(const v1::TaskId& server, const std::string& error, absl::Time now);
  // What follows of it for the plan is the caller's, as it is with NoteGone. Returns what that returns.
  bool Evict(const v1::TaskId& task, const std::string& reason, absl::Time now);
  // A task is no member any more. A lost server's job goes back. Returns whether the task is a worker whom the plan may
  // have, to be given to RemoveFromPlan.
  bool NoteGone(const v1::TaskId& task, bool lost, v1::MemberLine::Event event, const std::string& reason,
                absl::Time now);
  void RemoveFromPlan(const std::vector<v1::TaskId>& workers, bool lost, absl::Time now);

  const Parts parts_;
  JobState* const job_;
  Outbox* const out_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_ROSTER_H_
