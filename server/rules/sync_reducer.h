#ifndef RUBATO_SERVER_RULES_SYNC_REDUCER_H_
#define RUBATO_SERVER_RULES_SYNC_REDUCER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/parameter_server.pb.h"

namespace rubato {
// Of kernels/optimizer. The rules never look into it.
struct EncodedGradient;
}  // namespace rubato

namespace rubato::server {

class PushHyperparameters;

// What a worker's push says once for all of its chunks.
struct PushHeader {
  v1::TaskId task;
  uint64_t generation = 0;
  int64_t step = 0;
  // Position in epochs, for schedules.
  double epoch = 0;
  // The batch; without a shard: there is none, or the plan says which examples are whose.
  v1::ShardSlice slice;
  // Of a client's push. Null: it says nothing of them.
  std::shared_ptr<const PushHyperparameters> hyperparameters;
};

// One worker's push to one chunk.
struct Contribution {
  // Never null.
  std::shared_ptr<const PushHeader> header;
  // For the chunk, as it came. Null when the contribution is empty.
  std::shared_ptr<const EncodedGradient> gradient;
  // Weight in the mean. 0: counts as present and changes nothing.
  uint64_t examples = 0;
  int64_t base_version = 0;
};

// Collects the contributions to one SYNC step of one chunk: a place for each member, in order of worker index, which is
// the order of reduction. Add and Has take as long however many there are. Pure; not thread-safe.
class SyncReducer {
 public:
  // Makes places for the members of `plan`, and drops the contributions of everybody else.
  void SetMembers(const v1::Plan& plan);

  // Returns false, and keeps what it has, when this worker's contribution is there already, or it is no member.
  bool Add(Contribution contribution);

  bool Has(const v1::TaskId& task) const { return Has(task.index(), task.incarnation()); }
  bool Has(uint32_t worker, uint64_t incarnation) const;

  void Prefetch(uint32_t worker) const {
    if (worker < places_.size()) __builtin_prefetch(&places_[worker], 1);
  }

  bool empty() const { return count_ == 0; }
  // Whether the quorum of `plan`, if it has one, has contributed.
  bool HasQuorum(const v1::Plan& plan) const { return plan.quorum() > 0 && count_ >= plan.quorum(); }

  // All contributions in order of reduction; leaves the reducer empty.
  std::vector<Contribution> Take();

  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  // Of one member. As large as a line of the cache.
  struct Place {
    uint32_t worker = 0;
    bool taken = false;
    uint64_t incarnation = 0;
    Contribution contribution;
  };

  // Position in places_; their number if the worker is no member.
  size_t Find(uint32_t worker, uint64_t incarnation) const;

  // Ascending by worker index.
  std::vector<Place> places_;
  // Of them, with a contribution.
  uint32_t count_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_SYNC_REDUCER_H_
