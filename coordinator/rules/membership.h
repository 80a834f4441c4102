#ifndef RUBATO_COORDINATOR_RULES_MEMBERSHIP_H_
#define RUBATO_COORDINATOR_RULES_MEMBERSHIP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/coordinator.pb.h"

namespace rubato::coordinator {

// One task as the coordinator knows it.
struct Member {
  v1::TaskId id;
  v1::TaskStatus::State state = v1::TaskStatus::ALIVE;
  // SERVER: where workers reach it.
  std::string address;
  v1::Register info;
  absl::Time last_heard;
  // Why it left or was evicted.
  std::string reason;
  // The latest heartbeat.
  v1::WorkerProgress progress;
  v1::ServerProgress server;
  int64_t resident_bytes = 0;
  std::string last_problem;
  v1::TraceDone trace;
};

// Who takes part: tasks by role and index, their incarnations, leases and last heartbeats. A pure state machine; the
// caller acts on what it returns. Invariants:
// 1. At most one incarnation of a role and index is ALIVE.
// 2. An incarnation that has left or was evicted never becomes ALIVE again.
//
//   Membership membership(absl::Seconds(5));
//   auto arrival = membership.Register(task, info, "10.0.0.2:9000", now);
//   for (const v1::TaskId& task : membership.Expired(now)) membership.Evict(task, "...");
class Membership {
 public:
  enum class Kind {
    kNew,
    // The incarnation was alive already.
    kReconnected,
    // The incarnation had left or been evicted; nothing changed.
    kGone,
    // It is of the time before a rollback.
    kOutdated,
  };
  struct Arrival {
    Kind kind = Kind::kNew;
    // kNew: the incarnation that it replaces, which was alive until now and is now evicted.
    std::optional<v1::TaskId> replaced;
  };

  explicit Membership(absl::Duration lease) : lease_(lease) {}

  Arrival Register(const v1::TaskId& task, const v1::Register& info, const std::string& address, absl::Time now);

  // Renews the lease. Null when this incarnation is not alive. The pointer holds until the next Register.
  Member* Hear(const v1::TaskId& task, absl::Time now);
  // Its connection broke. If it was heard within a quarter of the lease, which is how often tasks send heartbeats, it
  // was alive until now: so the leases of those who are lost together end together.
  void NoteDisconnect(const v1::TaskId& task, absl::Time now);
  // Starts every lease afresh: after the coordinator was away, silence is nobody's fault.
  void RenewAll(absl::Time now);

  // The job went back: whoever is known, or has gone, is of the past.
  void Outdate();
  bool IsOutdated(const v1::TaskId& task) const;

  // False when this incarnation was not alive.
  bool Evict(const v1::TaskId& task, const std::string& reason);
  bool Leave(const v1::TaskId& task, const std::string& reason);

  // Tasks whose lease has run out, in order of role and index. They stay alive until Evict. As long as others have been
  // silent for three quarters of theirs nobody is named, for a quarter of a lease at most: tasks of a host that is lost
  // do not end at the same moment, and the plan should change for all of them once.
  std::vector<v1::TaskId> Expired(absl::Time now) const;

  // The latest incarnation of a role and index, alive or not; null when there was none.
  const Member* Find(v1::TaskId::Role role, uint32_t index) const;
  // Null when this incarnation is not alive.
  const Member* FindAlive(const v1::TaskId& task) const;
  // In order of index.
  std::vector<const Member*> Alive(v1::TaskId::Role role) const;
  // Latest incarnations in order of role and index, alive or not.
  const std::map<std::pair<int, uint32_t>, Member>& all() const { return members_; }
  absl::Duration lease() const { return lease_; }

 private:
  bool End(const v1::TaskId& task, v1::TaskStatus::State state, const std::string& reason);

  const absl::Duration lease_;
  std::map<std::pair<int, uint32_t>, Member> members_;
  std::set<std::tuple<int, uint32_t, uint64_t>> gone_;
  std::set<std::tuple<int, uint32_t, uint64_t>> outdated_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RULES_MEMBERSHIP_H_
