#ifndef RUBATO_SERVER_RULES_WAITING_REQUESTS_H_
#define RUBATO_SERVER_RULES_WAITING_REQUESTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "server/rules/partition_request.h"

namespace rubato::server {

// The requests of a partition that wait for their answers, by what the partition asks for: their token, their worker,
// and the chunks that they wait on. Nothing but the lists of tokens goes through all of them. Not thread-safe; owned by
// a Partition.
class WaitingRequests {
 public:
  // On which chunks a request waits.
  enum class Watch {
    // None: it waits for a plan, or is being tried.
    kNothing,
    // That in `watched`: nothing can come of it before that chunk comes further.
    kOne,
    kAll,
  };
  struct Waiting {
    // kPushPull: with its contributions as long as a cut holds them.
    PartitionRequest request;
    absl::Time deadline;
    v1::ExchangeReply::PushOutcome push = v1::ExchangeReply::PUSH_NONE;
    // Snapshot: chunks not captured yet.
    std::vector<uint32_t> to_capture;
    // Its owner's business alone.
    Watch watch = Watch::kNothing;
    uint32_t watched = 0;
  };
  // A request of a worker, and between which chunks its own are.
  struct Asked {
    Waiting* waiting;
    uint32_t lowest_chunk;
    uint32_t highest_chunk;
  };

  // Of a token that is not here, for some chunk. What is returned stays where it is until it is removed.
  Waiting& Add(PartitionRequest request, absl::Time deadline);
  // Nothing happens if it is not here.
  void Remove(uint64_t token);
  // Null if it is not here.
  Waiting* Find(uint64_t token) const;
  // Of all, ascending: who goes through them in this order does the same on every run.
  std::vector<uint64_t> Tokens() const;

  // Those of a worker, whatever its incarnation, and snapshots, as they came.
  const std::vector<Asked>& Of(uint32_t worker) const;
  const std::vector<Waiting*>& snapshots() const { return snapshots_; }
  // Who waits, ascending.
  std::vector<uint32_t> Workers() const;

  // It waits on this one of its chunks, or on all of them, until that is taken back.
  void WatchOne(Waiting& waiting, uint32_t chunk);
  void WatchAll(Waiting& waiting);
  // Those that wait on these chunks, ascending. Those that wait on one alone do so no more.
  std::vector<uint64_t> TakeWatchers(const std::vector<uint32_t>& chunks);
  // None waits on any chunk.
  void ForgetWatches();

 private:
  struct Watchers {
    // Of this chunk alone, and of this and others.
    std::vector<uint64_t> of_one, of_all;
  };

  void Unwatch(Waiting& waiting);

  absl::flat_hash_map<uint64_t, std::unique_ptr<Waiting>> waiting_;
  absl::flat_hash_map<uint32_t, std::vector<Asked>> by_worker_;
  std::vector<Waiting*> snapshots_;
  absl::flat_hash_map<uint32_t, Watchers> by_chunk_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_WAITING_REQUESTS_H_
