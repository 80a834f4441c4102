#ifndef RUBATO_CLIENT_SIDECAR_LEASE_KEEPER_H_
#define RUBATO_CLIENT_SIDECAR_LEASE_KEEPER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "client/link/frame.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"

namespace rubato::client {

// The shards that the coordinator leases to one incarnation of a worker, for a client that asks for them and says what
// it does with them. A shard is reported when all of it has been pushed and acknowledged. A pure state machine.
//
//   leases.Want();
//   if (std::optional<v1::ShardRequest> request = leases.Due(now)) send(*request);
//   leases.OnGrant(grant, now);
//   if (std::optional<LeaseBody> lease = leases.Take()) ...
class LeaseKeeper {
 public:
  // The client waits for a lease.
  void Want() { wanted_ = true; }
  // Not any more.
  void Forget() { wanted_ = false; }
  bool wanted() const { return wanted_; }

  // What is to be sent to the coordinator now; a message may be lost.
  std::optional<v1::ShardRequest> Due(absl::Time now);
  // The coordinator's answer. Answers to old requests change nothing.
  void OnGrant(const v1::ShardGrant& grant, absl::Time now);
  // The lease that the client waits for, if it is there; it waits no longer then.
  std::optional<LeaseBody> Take();
  // The data is used up, or the job's last step done.
  bool done() const { return done_ && granted_.empty(); }

  // The step at work has these examples.
  void SetSlice(const SliceBody& slice) { slice_ = slice; }
  // Everything that was pushed is acknowledged. Returns whether there are finished shards to be reported.
  bool Acknowledged();
  // As Acknowledged, and no further step begins: what is finished is to be reported at once.
  std::optional<v1::ShardRequest> Stopped(absl::Time now);

  // The shards that the coordinator has not back yet, and how far all steps that are acknowledged went in each.
  std::vector<v1::ShardPosition> Positions() const;

 private:
  struct Held {
    uint64_t shard = 0;
    int64_t next = 0;
    int64_t end = 0;
  };

  v1::ShardRequest NewRequest(absl::Time now);

  bool wanted_ = false;
  std::deque<LeaseBody> granted_;  // And not taken.
  std::vector<Held> held_;
  std::optional<SliceBody> slice_;
  std::vector<uint64_t> finished_;  // Not confirmed by an answer yet.
  v1::ShardRequest request_;        // The open one, or the last.
  bool open_ = false;
  absl::Time sent_at_ = absl::InfinitePast();
  absl::Time none_at_ = absl::InfinitePast();  // When the coordinator said NONE_NOW.
  bool done_ = false;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_LEASE_KEEPER_H_
