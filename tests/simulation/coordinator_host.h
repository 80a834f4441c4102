#ifndef RUBATO_TESTS_SIMULATION_COORDINATOR_HOST_H_
#define RUBATO_TESTS_SIMULATION_COORDINATOR_HOST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/membership.h"
#include "coordinator/plan_maker.h"
#include "tests/simulation/control_link.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {

// The process of the coordinator: its real membership and plan maker, a journal that survives it, and the control path.
// It can die between any two of its actions and be started again from the journal. Not thread-safe.
class CoordinatorHost {
 public:
  // `world` must outlive it.
  explicit CoordinatorHost(World* world);

  // Tasks' sessions; they must outlive it.
  void Attach(ControlLink* link);
  void Deliver(uint64_t epoch, const v1::TaskMessage& message);
  void RequestSwitch(const Rules& rules);
  // Dies before the next action but `actions`, or at once when nothing is to be done; comes back after `down`.
  void Crash(uint32_t actions, absl::Duration down);

  bool up() const { return up_; }
  uint64_t epoch() const { return epoch_; }
  // What it knows and waits for, for people.
  std::string Describe() const;

 private:
  using Actions = coordinator::PlanMaker::Actions;
  struct JournalEntry {
    enum class Kind { kRegistered, kGone, kAnnounce, kPlan };
    Kind kind;
    v1::TaskId task = {};
    v1::Plan plan = {};
    size_t members_decided = 0;
    uint64_t generation = 0;
    coordinator::PlanChange change = {};
  };

  coordinator::PlanMaker::Options PlanOptions() const;
  void OnRegister(const v1::TaskId& task);
  void OnHeartbeat(const v1::TaskId& task, const v1::WorkerProgress& progress);
  void Remove(const v1::TaskId& worker, bool lost, const std::string& reason);
  void MaybeStart();
  void Tick(uint64_t epoch);
  void Perform(const Actions& actions);
  void PerformOne(const coordinator::PlanAction& action);
  void TellWorkers(const v1::Plan& plan);
  void Send(const v1::TaskId& task, v1::Directive directive);
  void Stop(const v1::TaskId& task);
  void Die();
  void Restart();

  World* const world_;
  std::map<uint64_t, ControlLink*> links_;  // By incarnation.
  std::vector<JournalEntry> journal_;

  bool up_ = true;
  uint64_t epoch_ = 1;
  std::optional<coordinator::Membership> membership_;
  std::optional<coordinator::PlanMaker> plan_maker_;
  std::optional<uint32_t> dies_after_;
  absl::Duration down_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_COORDINATOR_HOST_H_
