#ifndef RUBATO_SERVER_RULES_PARTITION_H_
#define RUBATO_SERVER_RULES_PARTITION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/update_log.pb.h"
#include "server/rules/by_chunk.h"
#include "server/rules/chunk_rules.h"
#include "server/rules/cut_capture.h"
#include "server/rules/data_places.h"
#include "server/rules/held_start.h"
#include "server/rules/partition_request.h"
#include "server/rules/plan_window.h"
#include "server/rules/waiting_requests.h"

namespace rubato::server {

struct PartitionReply {
  uint64_t token = 0;
  v1::ExchangeReply::Outcome outcome = v1::ExchangeReply::OUTCOME_UNSPECIFIED;
  v1::ExchangeReply::PushOutcome push = v1::ExchangeReply::PUSH_NONE;
  // OK: the chunks whose weights the answer carries.
  std::vector<uint32_t> chunks;
  // OK: the step that begins with them; -1 for a snapshot.
  int64_t begun_step = -1;
  // After a push, per chunk of the request: the version that it was applied to; -1 where it is not done, or so long ago
  // that it is not known any more.
  std::vector<int64_t> applied_to;
  v1::Plan plan;          // MOVED.
  int64_t next_step = 0;  // MOVED, LATE.
  std::string message;
  std::vector<v1::TaskId> waiting_for;
};

// What a partition does to the world. Called synchronously from the Partition's methods.
class PartitionSink {
 public:
  virtual ~PartitionSink() = default;
  // Whether the contribution, which may be taken next, has nothing but numbers. If it has not, it counts as empty.
  virtual bool IsFinite(uint32_t chunk, const Contribution& contribution) = 0;
  // Apply the update to the chunk's weights.
  virtual void Apply(const ChunkRules::Update& update) = 0;
  // Whether there is an update log, for which Log and GradientCrc are called.
  virtual bool logs() const { return true; }
  // Of the gradient's bytes, for the update log; nothing if the contribution is empty.
  virtual std::optional<uint32_t> GradientCrc(const Contribution&) { return std::nullopt; }
  // Answer; for OK, with the chunks' weights as they are now, or as they were captured for this token. Those of SSP and
  // ASYNC may be newer.
  virtual void Answer(const PartitionReply& reply) = 0;
  // Keep the chunk's weights as they are now for the Answer to a snapshot.
  virtual void Capture(uint64_t token, uint32_t chunk) = 0;
  // Keep the chunk's values and optimizer state as they are now for this cut, which is of the plan in force. Once per
  // chunk of each cut, or not at all if the cut is given up; before the chunk's next update.
  virtual void CaptureCut(const v1::Cut& cut, uint32_t chunk) = 0;
  // Append to the update log.
  virtual void Log(const v1::UpdateLogRecord& record) = 0;
};

// The consistency rules of all chunks that one thread owns: takes requests and plans, and says what to apply and what
// to answer. A request is answered once: when all of its chunks can be served, when it is refused, or as WAITING when
// its timeout is over. Pure; not thread-safe.
//
// A plan with a cut has every chunk captured once, when all pushes of steps before the plan's first step E are done
// there. A push of E or later that comes earlier, which SSP and ASYNC allow, is held: nothing of it is taken before all
// of its chunks are captured. So for every step and every member that was not lost in it, the push is in all chunks of
// the cut or in none (I7). If another plan is entered before, what is not captured then is never captured: the cut
// is given up.
//
// A request that waits is tried again when a chunk that it waits for has come further: no push goes through all members
// or all requests.
//
//   Partition partition({0, 3}, absl::Seconds(5), &sink);
//   partition.Commit(plan);
//   partition.OnRequest(std::move(request), clock.Now());
//   partition.OnTick(clock.Now());
class Partition {
 public:
  // `chunks`: their indices. `timeout`: how long a request waits before it is answered WAITING. `staleness_limit`: as
  // ChunkRules has it.
  Partition(const std::vector<uint32_t>& chunks, absl::Duration timeout, PartitionSink* sink,
            int64_t staleness_limit = ChunkRules::kNoStalenessLimit);

  // The chunk goes on from a checkpoint that has it at `version`. Before anything else; the chunk is of this partition.
  void Restore(uint32_t chunk, int64_t version) { Rules(chunk).Restore(version); }

  void OnRequest(PartitionRequest request, absl::Time now);

  // Holds starts for the plan change `generation`; returns the highest step begun here, -1 for none. A generation that
  // is already in force, or under an announced one, changes nothing.
  int64_t Announce(uint64_t generation);
  void Abort(uint64_t generation, absl::Time now);
  // A new plan, or an amendment of the one in force. Older ones change nothing.
  void Commit(const v1::Plan& plan, absl::Time now);

  // Answers requests that have timed out.
  void OnTick(absl::Time now);
  // The connection that this request came on is gone: nobody waits for its answer, and what it waits for is not begun.
  // A push that it brought has been taken, or, if a cut holds it, is dropped and has to come again.
  void Forget(uint64_t token);

  const v1::Plan& plan() const { return window_.current(); }
  // Whether the plan in force has no cut, or one of which all chunks here have been captured.
  bool cut_complete() const { return !cut_.open(); }
  int64_t highest_begun() const;
  // Whoever is no member any more, for the acknowledgement of the plan in force.
  std::vector<v1::LostWorker> Lost() const { return places_.Lost(); }
  // Null when the chunk is not here.
  const ChunkRules* Find(uint32_t chunk) const { return chunks_.Find(chunk); }
  // For status: members' lowest clocks over the chunks, and the highest step begun.
  void Describe(v1::ServerProgress* progress) const;
  // For status: the steps that wait, one for each request, of up to 64 requests, the first four of each worker.
  std::vector<HeldStart> HeldStarts() const;
  // For tests that visit all states: appends all that what comes later depends on, except deadlines and what pushes
  // were applied to, and of tokens their order.
  void AppendState(std::string* state) const;

 private:
  using Waiting = WaitingRequests::Waiting;
  using Changed = std::vector<uint32_t>;

  ChunkRules& Rules(uint32_t chunk) { return chunks_.at(chunk); }
  const ChunkRules& Rules(uint32_t chunk) const { return chunks_.at(chunk); }
  // Has the memory of what is known of a request's worker on its chunks brought in, all at the same time.
  void Prefetch(const PartitionRequest& request) const;
  void Refuse(const PartitionRequest& request, v1::ExchangeReply::Outcome outcome, std::string message);
  absl::Status CheckChunks(const PartitionRequest& request) const;
  // Whether its pushes can be taken. FailedPrecondition names the reason.
  absl::Status CheckPushes(const PartitionRequest& request);
  // Whether its pushes have to wait until a cut has been captured.
  bool Holds(const PartitionRequest& request) const {
    return cut_.open() && request.kind == PartitionRequest::Kind::kPushPull &&
           cut_.Holds(request.generation, request.chunks);
  }
  // Captures those of these chunks that have come so far.
  void CaptureCut(const std::vector<uint32_t>& chunks);

  // Takes the pushes of a PushPull; the chunks that have come further are added to `changed`.
  void TakePushes(Waiting& waiting, Changed& changed);
  void Perform(ChunkRules::Update update);
  // Answers `waiting` if it can be; returns whether it did. Chunks that have come further are added to `changed`.
  bool TryAnswer(Waiting& waiting, Changed& changed);
  bool TrySnapshot(Waiting& waiting);
  // Whether something of its push is held, or in collection.
  bool PushPending(const Waiting& waiting) const;
  PartitionReply ReplyTo(const Waiting& waiting, v1::ExchangeReply::Outcome outcome) const;
  // Tries again everything that waits for one of these chunks, until nothing changes.
  void Wake(Changed changed);
  // Tries again everything, and then what waits for what that has changed.
  void WakeAll();
  void TryAgain(const std::vector<uint64_t>& tokens, Changed& changed);
  // Has it tried again when something may come of it. It was tried, and waits.
  void WatchFor(Waiting& waiting);
  // The chunk before which nothing can come of a member's request; nothing if any of its chunks may decide.
  std::optional<uint32_t> BlockedOn(const PartitionRequest& request) const;
  void DropSuperseded(const PartitionRequest& request);
  void LogPlan(const v1::Plan& plan);
  void LogUpdate(const ChunkRules::Update& update);
  // Whom the SYNC steps in collection wait for, by chunk, of those that have been looked at.
  using Awaited = absl::flat_hash_map<uint32_t, std::vector<v1::TaskId>>;
  // Some of those whom it waits for, if they are many: of the first chunks that wait.
  std::vector<v1::TaskId> WaitsFor(const Waiting& waiting, Awaited* awaited) const;
  std::vector<v1::TaskId> WaitsForOn(uint32_t chunk, const PartitionRequest& request, bool held,
                                     Awaited* awaited) const;

  const absl::Duration timeout_;
  PartitionSink* const sink_;
  PlanWindow window_;
  CutCapture cut_;
  DataPlaces places_;
  ByChunk<ChunkRules> chunks_;
  std::vector<uint32_t> order_;  // Of chunks_, ascending.
  // What is known of workers on them: of some after another in that order together.
  std::vector<WorkersOnChunks> workers_;
  WaitingRequests waiting_;
  // No request is due before.
  absl::Time next_deadline_ = absl::InfiniteFuture();
  int64_t highest_begun_ = -1;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_PARTITION_H_
