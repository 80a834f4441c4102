#ifndef RUBATO_COORDINATOR_RULES_PLAN_MAKER_H_
#define RUBATO_COORDINATOR_RULES_PLAN_MAKER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/parameter_server.pb.h"

namespace rubato::coordinator {

// The rules that somebody asks for. Members and first step are the plan maker's business.
struct PlanChange {
  v1::Mode mode = v1::MODE_UNSPECIFIED;
  int64_t staleness_bound = 0;
  uint32_t quorum = 0;
  double learning_rate_scale = 1;
  // Examples in a batch, by index of worker. They hold if these are the plan's members; otherwise, and if this is
  // empty, all have training.batch_size.
  std::map<uint32_t, uint32_t> batch_sizes;
  // Batches of a worker's step; 0: as it is.
  uint32_t sync_every = 0;
  // Of the optimizer; absent: as it is.
  std::optional<double> momentum = std::nullopt;
  // Whether gradients are encoded; absent: as it is.
  std::optional<bool> compress = std::nullopt;
  // "operator", "schedule: step 100", "worker 2 joined".
  std::string reason;
  // Names the operator's call that waits for the commit; 0 when nobody waits.
  uint64_t ticket = 0;
  // The mode policy asked: what it remembers once the change is made or dropped.
  std::optional<std::string> policy_memory;
  // The plan is a cut too. An empty name stands for "step<first step>".
  std::optional<v1::Cut> cut;
  // Nothing but that.
  bool only_cut = false;
};

// As PlanChange has them.
std::map<uint32_t, uint32_t> BatchSizes(const v1::Plan& plan);

// What the caller has to do, in this order.
struct PlanAction {
  enum class Kind {
    // Write `generation` and `change` to the journal, durably before the next action.
    kJournalAnnounce,
    // Write `plan` and `members_decided` to the journal, durably before the next action. A decision has amendment 0
    // and its `change`; anything else is an amendment.
    kJournalPlan,
    // Send to `server`.
    kAnnounce,
    kCommit,
    kAbort,
    // All servers have acknowledged `plan` for the first time; tell the workers, and whoever asked for `change`.
    kCommitted,
    // All servers have acknowledged this amendment of a plan that was committed before; tell the workers.
    kAmended,
    // Another request has taken the place of `change`, or the job ends first.
    kDropped,
  };
  Kind kind;
  uint32_t server = 0;
  uint64_t generation = 0;
  v1::Plan plan = {};
  PlanChange change = {};
  // kJournalPlan: members of the plan before any amendment.
  size_t members_decided = 0;
  // kCommitted: from the announcement to the last acknowledgement.
  absl::Duration round_trip = absl::ZeroDuration();
};

// Makes plans: announces a change to every server, commits it at a step that nobody has begun, and takes lost members
// out of the plan that holds. A pure state machine: every method returns what is to be done. Messages may be lost,
// repeated and reordered: what is not acknowledged is sent again by OnTick. Invariants:
// 1. A decision or amendment is in the journal before the first message that carries it.
// 2. One change at a time: nothing is announced before all servers hold the present plan with its last amendment and
//    all of its members have entered it. Requests wait meanwhile: the last one wins, joins are merged into it.
// 3. Generations and first steps never go back. A new plan's members are the workers present when it is decided.
class PlanMaker {
 public:
  struct Options {
    // Indices of those that take part, ascending.
    std::vector<uint32_t> servers = {0};
    // Unacknowledged messages are sent again after this long.
    absl::Duration resend = absl::Milliseconds(200);
    // STATIC dispatch: 0 otherwise.
    int64_t static_batch = 0;
    int64_t train_examples = 0;
    // Where the first plan begins, and the highest generation before it: not 0 in a job that goes on from a checkpoint.
    int64_t first_step = 0;
    int64_t first_example = 0;
    uint64_t last_generation = 0;
    // The step before which the last checkpoint is.
    int64_t last_cut_step = 0;
  };
  using Actions = std::vector<PlanAction>;

  explicit PlanMaker(const Options& options)
      : options_(options), last_cut_step_(options.last_cut_step), last_generation_(options.last_generation) {}

  // The first plan, with the workers added so far. Needs no announcement: nobody has begun a step.
  Actions Start(const PlanChange& first, absl::Time now);

  // After a restart: `plan` as journalled with its last amendment, the number of members that it was decided with, the
  // quorum that was asked for, and the announcement that was not decided, if any, which is made again. Everything is
  // sent to all servers again.
  Actions Resume(const v1::Plan& plan, size_t members_decided, uint32_t requested_quorum,
                 const std::optional<std::pair<uint64_t, PlanChange>>& announced, absl::Time now);

  // A worker that shall be a member. A new incarnation takes the place of the old one, which is to be removed first.
  Actions AddWorker(const v1::TaskId& worker, absl::Time now);
  // Amends the present plan, once, when it has some of these workers. `lost`: with STATIC dispatch a new plan follows,
  // so that the others take over their part of the data.
  Actions RemoveWorkers(const std::vector<v1::TaskId>& workers, bool lost, absl::Time now);
  Actions RequestChange(const PlanChange& change, absl::Time now);
  // The next plan is this cut: another change that waits, or one with the present rules. Nothing happens when closed.
  Actions RequestCut(const v1::Cut& cut, absl::Time now);

  Actions OnAnnounceAck(uint32_t server, uint64_t generation, int64_t highest_started_step, absl::Time now);
  Actions OnPlanAck(uint32_t server, uint64_t generation, uint64_t amendment, absl::Time now);
  // From the worker's heartbeat: the plan that it works under.
  Actions OnEntered(const v1::TaskId& worker, uint64_t generation, absl::Time now);
  // A server registered again: what it may have missed.
  Actions OnServerBack(uint32_t server);
  Actions OnTick(absl::Time now);

  // No further changes: aborts what is announced and drops what waits. Amendments go on.
  Actions Close();
  // Of the operators' requests that are not answered yet, which is the caller's to do now.
  std::vector<uint64_t> TakeTickets();

  bool has_plan() const { return plan_.generation() != 0; }
  // The plan decided last; has_plan().
  const v1::Plan& plan() const { return plan_; }
  // Members of the plan before any amendment.
  size_t members_decided() const { return members_decided_; }
  // The highest one that was announced or decided.
  uint64_t last_generation() const { return last_generation_; }
  bool HeldByAllServers() const;
  bool AllEntered() const;
  // 0 when no change is announced.
  uint64_t announced_generation() const { return announced_ ? announced_->generation : 0; }
  // What a change waits for now, as text; empty when there is none.
  std::string WaitingFor() const;

 private:
  struct Held {
    uint64_t generation = 0;
    uint64_t amendment = 0;
  };
  struct Announced {
    uint64_t generation = 0;
    PlanChange change;
    absl::Time at;
    absl::Time sent_at;
    // Highest started step by server.
    std::map<uint32_t, int64_t> acks;
  };
  struct Entered {
    uint64_t incarnation = 0;
    uint64_t generation = 0;
  };

  bool Has(uint32_t server) const;
  bool Behind(uint32_t server) const;
  std::vector<std::string> ServersBehind() const;
  std::vector<std::string> MembersNotEntered() const;
  std::vector<std::string> Joining() const;
  void SetMembers(v1::Plan* plan) const;
  void SetBatchSizes(const PlanChange& change, v1::Plan* plan) const;
  void SendPlan(absl::Time now, Actions* actions);
  void Announce(uint64_t generation, const PlanChange& change, absl::Time now, Actions* actions);
  void MaybeAnnounce(absl::Time now, Actions* actions);
  void Decide(absl::Time now, Actions* actions);
  PlanChange PresentRules(const std::string& reason) const;

  const Options options_;
  bool closed_ = false;
  // Workers that shall be members, by index.
  std::map<uint32_t, v1::TaskId> workers_;
  v1::Plan plan_;
  // The members with which plan_ was decided, amendments aside: the parts of STATIC dispatch.
  size_t members_decided_ = 0;
  PlanChange change_;
  absl::Time change_at_;
  bool committed_ = false;
  absl::Time sent_at_ = absl::InfinitePast();
  uint64_t reported_amendment_ = 0;
  std::map<uint32_t, Held> held_;
  std::map<uint32_t, Entered> entered_;
  std::optional<Announced> announced_;
  std::optional<PlanChange> waiting_;
  std::optional<v1::Cut> waiting_cut_;
  // Its name, and so its directory, is taken.
  int64_t last_cut_step_;
  // STATIC dispatch: a member was lost.
  bool repartition_ = false;
  uint64_t last_generation_ = 0;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_PLAN_MAKER_H_
