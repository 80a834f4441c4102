#ifndef RUBATO_TESTS_SIMULATION_COORDINATOR_HOST_H_
#define RUBATO_TESTS_SIMULATION_COORDINATOR_HOST_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/rules/coordinator_core.h"
#include "tests/simulation/control_link.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {

// The process of the coordinator: the real core, which is replaced if the job goes back to a checkpoint, a journal
// that survives it, and the control path. It can die between any two of its actions, with or without what it had not
// yet forced to the disk, and recovers from the journal. Not thread-safe.
class CoordinatorHost {
 public:
  // `world` must outlive it.
  explicit CoordinatorHost(World* world);

  // Tasks' sessions; they must outlive it.
  void Attach(ControlLink* link);
  void Deliver(uint64_t epoch, const v1::TaskMessage& message);
  void RequestSwitch(const Rules& rules);
  void RequestCheckpoint();
  // Dies as the fault says, or soon when nothing is to be done, and comes back.
  void Crash(const Fault& crash);

  bool up() const { return up_; }
  // The job has ended, and this process with it.
  bool finished() const { return finished_; }
  uint64_t epoch() const { return epoch_; }
  // Whether the coordinator is up and counts this task among the living.
  bool CountsOn(const v1::TaskId& task) const;
  // What it knows and waits for, for people.
  std::string Describe() const;

 private:
  void Create();
  void Tick(uint64_t epoch);
  void Perform(const coordinator::Actions& actions);
  void PerformOne(const coordinator::Action& action);
  void Write(const coordinator::AppendJournal& append);
  void OnTerm(const v1::JournalTerm& term);
  void Finish(const absl::Status& status);
  void Die();
  // Of the journal, what is not on the disk.
  void LosePower();
  void ForgetShards();
  void Restart();
  // A new core goes on from the journal.
  void Recover();

  World* const world_;
  std::map<uint64_t, ControlLink*> links_;  // By incarnation.
  std::vector<v1::JournalRecord> journal_;
  size_t durable_ = 0;  // Records that survive a power cut.
  // Incarnations that hold shards of which the journal knows nothing any more.
  std::set<uint64_t> unknown_holders_;

  bool up_ = true;
  bool finished_ = false;
  uint64_t epoch_ = 1;
  std::unique_ptr<coordinator::CoordinatorCore> core_;
  uint64_t cores_ = 0;
  int boot_ = 0;
  uint64_t sent_ = 0;  // Directives.
  uint64_t tickets_ = 0;
  std::optional<uint32_t> dies_after_;  // So many actions.
  bool dies_deciding_ = false;          // Counted from the next decision.
  absl::Duration down_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_COORDINATOR_HOST_H_
