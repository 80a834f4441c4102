#ifndef RUBATO_SERVER_RULES_SYNC_REDUCER_H_
#define RUBATO_SERVER_RULES_SYNC_REDUCER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/parameter_server.pb.h"

namespace rubato {
// Of kernels/optimizer. The rules never look into it.
struct EncodedGradient;
}  // namespace rubato

namespace rubato::server {

class PushHyperparameters;

// One worker's push to one chunk.
struct Contribution {
  v1::TaskId task;
  uint64_t generation = 0;
  int64_t step = 0;
  // Weight in the mean. 0: counts as present and changes nothing.
  uint64_t examples = 0;
  // Position in epochs, for schedules.
  double epoch = 0;
  // The batch; without a shard: there is none, or the plan says which examples are whose.
  v1::ShardSlice slice;
  int64_t base_version = 0;
  // For the chunk, as it came. Null when the contribution is empty.
  std::shared_ptr<const EncodedGradient> gradient;
  // Of a client's push. Null: it says nothing of them.
  std::shared_ptr<const PushHyperparameters> hyperparameters;
};

// Collects the contributions to one SYNC step of one chunk. Add and Has take as long however many there are. Pure; not
// thread-safe.
class SyncReducer {
 public:
  // Returns false, and keeps what it has, when this worker's contribution is there already.
  bool Add(Contribution contribution);

  bool Has(const v1::TaskId& task) const { return Has(task.index(), task.incarnation()); }
  bool Has(uint32_t worker, uint64_t incarnation) const;

  void Prefetch(uint32_t worker) const { there_.prefetch(worker); }

  // Drops the contributions of everybody who is not a member of `plan`.
  void KeepMembers(const v1::Plan& plan);

  bool empty() const { return pending_.empty(); }
  // Whether the quorum of `plan`, if it has one, has contributed.
  bool HasQuorum(const v1::Plan& plan) const { return plan.quorum() > 0 && pending_.size() >= plan.quorum(); }

  // All contributions in order of worker index, which is the order of reduction; leaves the reducer empty.
  std::vector<Contribution> Take();

  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  // Positions in pending_, in order of worker index.
  std::vector<size_t> Order() const;

  // In order of arrival.
  std::vector<Contribution> pending_;
  // Who they are from: incarnations by worker index.
  absl::flat_hash_map<uint32_t, uint64_t> there_;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_SYNC_REDUCER_H_
