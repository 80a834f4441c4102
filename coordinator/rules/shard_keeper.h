#ifndef RUBATO_COORDINATOR_RULES_SHARD_KEEPER_H_
#define RUBATO_COORDINATOR_RULES_SHARD_KEEPER_H_

#include <cstdint>

#include "absl/time/time.h"
#include "coordinator/rules/cut_keeper.h"
#include "coordinator/rules/job_state.h"
#include "coordinator/rules/outbox.h"
#include "proto/coordinator.pb.h"

namespace rubato::coordinator {

// DYNAMIC dispatch: answers requests for shards, and gives what a worker that is gone has not trained to others. How
// far it came, the servers say as they take it out of the plan, after which nothing more of it is applied. Pure.
//
// While a cut is being made nothing is given back before all members have said where they are: a shard goes from one
// worker to another either before the cut, on both sides, or after it.
class ShardKeeper {
 public:
  // All outlive it.
  ShardKeeper(JobState* job, Outbox* out, CutKeeper* cuts) : job_(job), out_(out), cuts_(cuts) {}

  void OnRequest(const v1::TaskId& worker, const v1::ShardRequest& request);
  // Before the plan maker hears of it.
  void OnPlanAck(const v1::PlanAck& ack);
  // After each event, before the cut may be complete.
  void ReturnWhenKnown(absl::Time now);

 private:
  // The plan does not have it any more, and all servers know.
  bool IsKnown(const v1::TaskId& worker) const;
  void Return(const v1::TaskId& worker, absl::Time now);

  JobState* const job_;
  Outbox* const out_;
  CutKeeper* const cuts_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_SHARD_KEEPER_H_
