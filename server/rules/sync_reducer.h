#ifndef RUBATO_SERVER_RULES_SYNC_REDUCER_H_
#define RUBATO_SERVER_RULES_SYNC_REDUCER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "server/rules/member_list.h"

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
  // Makes places for these members, and drops the contributions of everybody else.
  void SetMembers(MemberList::Ptr members);

  // Returns false, and keeps what it has, when this worker's contribution is there already, or it is no member.
  bool Add(Contribution contribution);

  bool Has(const v1::TaskId& task) const { return Has(task.index(), task.incarnation()); }
  bool Has(uint32_t worker, uint64_t incarnation) const {
    const size_t slot = list_->Find(worker, incarnation);
    return slot < taken_.size() && taken_[slot];
  }

  void Prefetch(uint32_t worker) const {
    if (worker >= contributions_.size()) return;
    const Contribution* const place = &contributions_[worker];
    __builtin_prefetch(place, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(place + 1) - 1, 1);
  }

  bool empty() const { return count_ == 0; }
  // Whether the quorum of `plan`, if it has one, has contributed.
  bool HasQuorum(const v1::Plan& plan) const { return plan.quorum() > 0 && count_ >= plan.quorum(); }

  // All contributions in order of reduction; leaves the reducer empty.
  std::vector<Contribution> Take();

  // For tests that visit all states: appends all that what comes later depends on.
  void AppendState(std::string* state) const;

 private:
  MemberList::Ptr list_ = std::make_shared<const MemberList>();
  // By slot: what was contributed, and whether it was. That is asked more often, and takes a bit.
  std::vector<Contribution> contributions_;
  std::vector<bool> taken_;
  // Of them, how many were.
  uint32_t count_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_SYNC_REDUCER_H_
