#ifndef RUBATO_COORDINATOR_RULES_SHARD_DISPATCHER_H_
#define RUBATO_COORDINATOR_RULES_SHARD_DISPATCHER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "proto/coordinator.pb.h"

namespace rubato::coordinator {

// DYNAMIC dispatch: cuts each epoch into shards and leases them to the workers that ask. Shards are handed out in order
// of epoch, the next epoch's as soon as those of the present one are all leased; what a lost worker has not finished is
// given out again first. A shard is finished once: a report from a worker that no longer holds it counts for nothing.
// Shards are numbered from 1 over all epochs. A pure state machine.
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
  // The worker has been evicted or has left.
  void Release(const v1::TaskId& worker);

  // After a restart, from the journal and in its order.
  void RestoreLease(const v1::TaskId& worker, const v1::ShardGrant& grant);
  void RestoreFinished(uint64_t shard);

  // All shards of the last epoch are finished.
  bool Done() const;
  int64_t examples_done() const { return examples_done_; }

 private:
  struct LastAnswer {
    uint64_t incarnation = 0;
    v1::ShardGrant grant;
  };

  // 0 when there is none to give.
  uint64_t TakeShard();
  v1::ShardGrant Describe(uint64_t shard) const;
  bool Finish(uint64_t shard);

  const Options options_;
  const int64_t shards_per_epoch_;
  // 0: without end.
  const uint64_t last_shard_;
  uint64_t next_shard_ = 1;
  // Given back by lost workers.
  std::set<uint64_t> returned_;
  // Who holds a shard.
  std::map<uint64_t, v1::TaskId> leases_;
  std::map<uint32_t, LastAnswer> answers_;
  int64_t examples_done_ = 0;
  uint64_t shards_done_ = 0;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_SHARD_DISPATCHER_H_
