#ifndef RUBATO_SERVER_RULES_CHUNK_RULES_H_
#define RUBATO_SERVER_RULES_CHUNK_RULES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"
#include "server/rules/plan_window.h"
#include "server/rules/push_deduper.h"
#include "server/rules/step_gate.h"
#include "server/rules/sync_reducer.h"
#include "server/rules/worker_rows.h"
#include "server/rules/worker_state.h"

namespace rubato::server {

// The rules of apply and gate for one chunk: which push is applied when, and which step may begin. Holds no values.
// Pure; not thread-safe; owned by a Partition.
//
//  1. A push is done at most once per (worker incarnation, step).                                               (I3)
//  2. In SYNC, next_sync_step() grows by one per update, which takes each member's contribution at most once.   (I1)
//     Steps for which no member will contribute are left out: all who began them are lost, or were moved on.
//  3. A start of step c under bound s is open only when every member's clock is at least c - s.                 (I2)
class ChunkRules {
 public:
  // `staleness_limit`: pushes of SSP and ASYNC that are so stale are dropped (Ringmaster ASGD's R).
  explicit ChunkRules(uint32_t chunk, int64_t staleness_limit = kNoStalenessLimit)
      : ChunkRules(chunk, staleness_limit, WorkersOnChunks(1), 0) {}
  // Keeps what is known of workers in `state`, as the chunk at `position` there.
  ChunkRules(uint32_t chunk, int64_t staleness_limit, const WorkersOnChunks& state, size_t position)
      : chunk_(chunk),
        staleness_limit_(staleness_limit),
        workers_(state.workers, position),
        clocks_(state.clocks, position),
        gate_(workers_, clocks_),
        deduper_(workers_),
        reducer_(workers_) {}

  static constexpr int64_t kNoStalenessLimit = std::numeric_limits<int64_t>::max();

  // What became of a push.
  enum class PushResult { kApplied, kDuplicate, kPending, kDropped };
  // What may be begun.
  enum class StartResult { kOpen, kWait, kMoved };
  // What a start waits for: a plan change to be committed or aborted, the contributions to the SYNC step in collection,
  // or all members' clocks.
  enum class Wait { kCoordinator, kContributions, kClocks };

  // An update that the caller must apply to the weights: the contributions in order of reduction. `ineffective`: it
  // makes no version and is only to be recorded.
  struct Update {
    uint32_t chunk;
    std::vector<Contribution> contributions;
    bool ineffective = false;
    // The version before the update.
    int64_t from_version = 0;
    // Of the plan that the step belongs to.
    double learning_rate_scale = 1;
    // One push of SSP or ASYNC, which may be stale.
    bool is_one_push = false;
    // Of the plan, if it is another one than the config's.
    std::optional<double> momentum = std::nullopt;
  };

  struct Push {
    PushResult result;
    std::optional<Update> update;
  };

  struct Start {
    StartResult result;
    // kMoved: the step to begin instead, under the current plan.
    int64_t next_step = 0;
    // kWait.
    Wait wait = Wait::kCoordinator;
    // kClocks: what they have to reach.
    int64_t clock = 0;
  };

  // All that decides, beside the plans and a member's own requests, whether something of it may be begun, or captured.
  struct Reached {
    int64_t next_sync_step;
    int64_t lowest_clock;

    friend bool operator==(const Reached&, const Reached&) = default;
  };

  // The chunk goes on from a checkpoint that has it at `version`. Before the first plan.
  void Restore(int64_t version);

  void EnterPlan(const PlanWindow& window);
  // Members were taken out of the window's plans. Returns the update that this completes, if it does.
  std::optional<Update> Amend(const PlanWindow& window);

  // Whether TakePush would accept it; changes nothing. FailedPrecondition names the reason.
  absl::Status CheckPush(const PlanWindow& window, const Contribution& contribution);
  // REQUIRES: CheckPush is OK.
  Push TakePush(const PlanWindow& window, Contribution push);

  // `task`, which works under `generation`, asks for `step`. For a step of the current plan this says that the task
  // has no push left of the plan before and, under a quorum, of steps from which it was moved. Repeating it changes
  // nothing more. Returns the update that this completes, if the sender was the last one that a step waited for.
  std::optional<Update> NoteStartRequest(const PlanWindow& window, const v1::TaskId& task, uint64_t generation,
                                         int64_t step);
  // Whether the task may begin the step. REQUIRES: NoteStartRequest was called for it. FailedPrecondition when it must
  // not ask for this step.
  absl::StatusOr<Start> AskStart(const PlanWindow& window, const v1::TaskId& task, uint64_t generation,
                                 int64_t step) const;
  // REQUIRES: AskStart answered kOpen.
  void Begin(const v1::TaskId& task, int64_t step);

  // Members whose contribution to the step in collection is missing and may still come, in order of index. These
  // functions name `most` of them.
  std::vector<v1::TaskId> Awaited(const PlanWindow& window, size_t most) const;
  // Members for whom a start waits; none if it waits for the coordinator.
  std::vector<v1::TaskId> WaitingFor(const PlanWindow& window, const Start& start, size_t most) const;
  // Whether no push of a step before the current plan's first one will change the chunk any more.
  bool IsPlanReached(const PlanWindow& window) const;
  // Members for whom that waits.
  std::vector<v1::TaskId> AwaitedByPlan(const PlanWindow& window, size_t most) const;
  // Whether this worker's contribution to the step in collection is there.
  bool Pending(const v1::TaskId& task) const { return reducer_.Has(task); }

  // Whether the weights are now those that SYNC step `step` starts with.
  bool StartsWith(const PlanWindow& window, int64_t step) const;

  // The version that this worker's push of the step was applied to; -1 if it is not done, or not its last one.
  int64_t AppliedTo(const v1::TaskId& task, int64_t step) const {
    return deduper_.AppliedTo(task.index(), task.incarnation(), step);
  }

  // Has the memory of what is known of that worker brought in, which would take long if others have pushed since.
  void Prefetch(uint32_t worker) const {
    workers_.Prefetch(worker);
    clocks_.Prefetch(worker);
  }
  Reached reached() const { return {next_sync_step_, gate_.LowestClock()}; }

  uint32_t chunk() const { return chunk_; }
  int64_t version() const { return version_; }
  // The next step that SYNC applies here.
  int64_t next_sync_step() const { return next_sync_step_; }
  const PushDeduper& deduper() const { return deduper_; }
  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  // Completes the step in collection if nothing more is to come for it, and leaves out steps that nobody will do.
  std::optional<Update> CloseStep(const PlanWindow& window);
  Update CompleteSync(const PlanWindow& window, const v1::Plan& plan);
  // Takes a push that changes nothing, as its step was complete without it or it is too stale.
  Push Drop(const PlanWindow& window, const v1::Plan& plan, Contribution push);
  Push ApplyNow(const PlanWindow& window, const v1::Plan& plan, Contribution push);
  // A member's push is done.
  void Advance(const PlanWindow& window, const PushHeader& push);
  // Whose contributions may come: those of all members, as long as a SYNC step is to be completed.
  void SetContributors(const PlanWindow& window);
  bool IsAwaited(const PlanWindow& window, size_t slot) const;
  bool IsAnybodyAwaited(const PlanWindow& window) const;
  bool FinishesSync(const PlanWindow& window) const;
  // The plan whose rules complete the step in collection.
  const v1::Plan& CollectingPlan(const PlanWindow& window) const;
  absl::StatusOr<Start> StartOf(const PlanWindow& window, const v1::TaskId& task, const StepGate::Member& member,
                                bool under_previous, int64_t step) const;
  Start GateOf(const PlanWindow& window, int64_t step) const;
  Start OpenWhenReached(int64_t step) const;

  const uint32_t chunk_;
  const int64_t staleness_limit_;
  int64_t version_ = 0;
  int64_t next_sync_step_ = 0;
  const ChunkColumn<WorkerOnChunk> workers_;
  const ChunkColumn<int64_t> clocks_;
  StepGate gate_;
  PushDeduper deduper_;
  SyncReducer reducer_;
  // Position of a member who was awaited when it was last looked at: while contributions come, there is none before it.
  mutable size_t awaited_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_CHUNK_RULES_H_
