#ifndef RUBATO_COORDINATOR_RULES_SHARD_DISPATCHER_H_
#define RUBATO_COORDINATOR_RULES_SHARD_DISPATCHER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"

namespace rubato::coordinator {

// DYNAMIC dispatch: cuts each epoch into shards and leases them to the workers that ask. Shards are handed out in order
// of epoch, the next epoch's as soon as those of the present one are all leased; what is left of a lost worker's is
// given out first, once it is known how far the worker came. A shard is finished once: a report from a worker that no
// longer holds it counts for nothing. Shards are numbered from 1 over all epochs. A pure state machine.
//
// For a cut every member says once, with NoteCut, how far it is in the shards that it holds. What happens to shards of
// a member after that is not in the cut; CutState is what the cut has when all have spoken.
class ShardDispatcher {
 public:
  struct Options {
    int64_t train_examples = 1;
    int64_t shard_examples = 1;
    // 0: without end.
    int64_t epochs = 0;
  };
  struct Answer {
    // Absent for a request older than the last one of this worker, which got its answer.
    std::optional<v1::ShardGrant> grant;
    // The grant is a new lease, to be journalled.
    bool leased = false;
    // Shards that this request has finished, to be journalled.
    std::vector<uint64_t> finished;
  };

  explicit ShardDispatcher(const Options& options);

  // A repeated request_id of an incarnation gets the same answer.
  Answer Request(const v1::TaskId& worker, const v1::ShardRequest& request);
  // The worker has been evicted or has left. Its shards are nobody else's until they are returned.
  void Leave(const v1::TaskId& worker);
  // Those who have left with shards that are not returned.
  const std::vector<v1::TaskId>& gone() const { return gone_; }
  // What is left of the shards of one of these is given out again. `trained`: how far it came, which may be in a shard
  // that it does not hold any more; absent: it has trained nothing. The shards that it was given before are finished.
  // InvalidArgument: the position is outside of its shard; then all of that shard is given out again.
  absl::Status Return(const v1::TaskId& worker, const std::optional<v1::ShardPosition>& trained);

  // After a restart, from the journal and in its order.
  void RestoreLease(const v1::TaskId& worker, const v1::ShardGrant& grant);
  void RestoreFinished(uint64_t shard);
  // Before the first lease, in a job that goes on from a cut. InvalidArgument: it is not of this training set.
  absl::Status RestoreCut(const v1::ShardState& state);

  // Another cut: what was said of the last one is forgotten.
  void BeginCut();
  // The worker has entered the cut's plan with these shards. Only what it says first counts. InvalidArgument: a
  // position is outside of its shard, or the worker does not hold the shard.
  absl::Status NoteCut(const v1::TaskId& worker, const std::vector<v1::ShardPosition>& held);
  // Valid when all members have spoken.
  v1::ShardState CutState() const;
  // Whether the worker has said it.
  bool HasSpoken(const v1::TaskId& worker) const {
    return cut_spoken_.contains({worker.index(), worker.incarnation()});
  }
  // The examples that are in the state.
  int64_t ExamplesIn(const v1::ShardState& state) const;

  // All shards of the last epoch are finished.
  bool Done() const;
  int64_t examples_done() const { return examples_done_; }

 private:
  struct LastAnswer {
    uint64_t incarnation = 0;
    v1::ShardGrant grant;
  };

  struct Lease {
    v1::TaskId worker;
    // Of its holder's requests, the one that it answered.
    uint64_t request_id = 0;
  };

  // The shard's examples, as positions in its epoch's order: [begin, end).
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
  };

  // 0 when there is none to give.
  uint64_t TakeShard();
  v1::ShardGrant Describe(uint64_t shard) const;
  bool Holds(const v1::TaskId& worker, uint64_t shard) const;
  bool Finish(uint64_t shard);
  // Nobody holds it; examples before `next` are trained.
  void GiveBack(uint64_t shard, int64_t next);
  Range RangeOf(uint64_t shard) const;
  // Its first example that is not trained yet.
  int64_t NextOf(uint64_t shard) const;
  bool IsFinished(uint64_t shard) const { return shard < finished_below_ || finished_.contains(shard); }
  void MarkFinished(uint64_t shard);

  const Options options_;
  const int64_t shards_per_epoch_;
  // 0: without end.
  const uint64_t last_shard_;
  uint64_t next_shard_ = 1;
  // Given back by lost workers.
  std::set<uint64_t> returned_;
  // By shard.
  std::map<uint64_t, Lease> leases_;
  std::vector<v1::TaskId> gone_;
  std::map<uint32_t, LastAnswer> answers_;
  int64_t examples_done_ = 0;
  uint64_t shards_done_ = 0;
  // Finished are all shards below the first, and those of the second.
  uint64_t finished_below_ = 1;
  std::set<uint64_t> finished_;
  // Of shards of which a part was trained before the cut that the job goes on from, or by a worker that is gone.
  std::map<uint64_t, int64_t> next_;

  // The cut: who has spoken, how far they were, and what they have leased since then.
  std::set<std::pair<uint32_t, uint64_t>> cut_spoken_;
  std::map<uint64_t, int64_t> cut_next_;
  std::set<uint64_t> cut_later_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_SHARD_DISPATCHER_H_
