#ifndef RUBATO_SERVER_RULES_SYNC_REDUCER_H_
#define RUBATO_SERVER_RULES_SYNC_REDUCER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/parameter_server.pb.h"
#include "server/rules/contribution.h"
#include "server/rules/member_list.h"
#include "server/rules/worker_rows.h"
#include "server/rules/worker_state.h"

namespace rubato::server {

// Collects the contributions to one SYNC step of one chunk: one of each member, in order of worker index, which is the
// order of reduction. Add and Has take as long however many there are. Pure; not thread-safe.
class SyncReducer {
 public:
  // Keeps contributions in `workers`.
  explicit SyncReducer(ChunkColumn<WorkerOnChunk> workers = {}) : workers_(std::move(workers)) {}

  // Takes contributions of these members, and drops the contributions of everybody else.
  void SetMembers(MemberList::Ptr members);

  // Returns false, and keeps what it has, when this worker's contribution is there already, or it is no member.
  bool Add(Contribution contribution);

  bool Has(const v1::TaskId& task) const { return Has(task.index(), task.incarnation()); }
  bool Has(uint32_t worker, uint64_t incarnation) const {
    const size_t slot = list_->Find(worker, incarnation);
    return slot < taken_.size() && taken_[slot];
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
  ChunkColumn<WorkerOnChunk> workers_;
  // By slot: whether the member has contributed. That is asked more often, and takes a bit.
  std::vector<bool> taken_;
  // How many have.
  uint32_t count_ = 0;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_RULES_SYNC_REDUCER_H_
