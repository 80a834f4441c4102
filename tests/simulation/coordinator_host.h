#ifndef RUBATO_TESTS_SIMULATION_COORDINATOR_HOST_H_
#define RUBATO_TESTS_SIMULATION_COORDINATOR_HOST_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/rules/coordinator_core.h"
#include "tests/simulation/control_link.h"
#include "tests/simulation/sim_journal.h"
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
  // Says and hears nothing for a while. Another one may be started meanwhile, as on another machine: then it finds,
  // when it writes the first time, that the journal is not its own any more.
  void Freeze(const Fault& freeze);
  // The journal's disk has no room for a while.
  void FillDisk(absl::Duration length);

  bool up() const { return up_; }
  // The job has ended, and this process with it.
  bool finished() const { return finished_; }
  uint64_t epoch() const { return epoch_; }
  // Whether all examples are trained, and the job comes to its end.
  bool IsFinishing() const;
  // Whether the coordinator is up and counts this task among the living.
  bool CountsOn(const v1::TaskId& task) const;
  // What it knows and waits for, for people.
  std::string Describe() const;

 private:
  std::string BootId() const { return absl::StrCat("boot ", boot_); }
  void Create();
  void Tick(uint64_t epoch);
  void Perform(const coordinator::Actions& actions);
  void PerformOne(const coordinator::Action& action);
  void PerformWaiting();
  void Send(const coordinator::SendDirective& send, uint64_t epoch);
  void Thaw(uint64_t epoch);
  // The one that was frozen is taken for dead.
  void Replace();
  // It wakes up.
  void WakeReplaced();
  // What the replaced one has decided, as far as it gets.
  void PerformReplaced(const coordinator::Actions& actions);
  void Write(const coordinator::AppendJournal& append);
  void OnTerm(const v1::JournalTerm& term);
  // Whether a client's job goes back to the weights that were assigned, if it does.
  void CheckFirstWeights(const v1::JournalTerm::Rollback& rollback);
  void Finish(const absl::Status& status);
  void Die();
  // Nothing of its process is left but the journal.
  void End();
  void LosePower();
  // Only the first `kept` of the journal's records are left.
  void ForgetShards(const std::vector<v1::JournalRecord>& records, size_t kept);
  void Restart();
  // What the journal says now.
  std::vector<v1::JournalRecord> ReadJournal();
  // A new core goes on from these records of the journal.
  void Recover(const std::vector<v1::JournalRecord>& records);

  World* const world_;
  std::map<uint64_t, ControlLink*> links_;  // By incarnation.
  SimJournal journal_;
  int disk_full_ = 0;  // Faults that say so now.
  // What the core has asked for and is not done.
  std::deque<coordinator::Action> waiting_;
  bool performing_ = false;

  bool frozen_ = false;
  // That have come meanwhile.
  std::vector<v1::TaskMessage> unheard_;
  // One that was frozen, and is not the job's coordinator any more.
  struct Replaced {
    uint64_t epoch = 0;
    std::unique_ptr<coordinator::CoordinatorCore> core;
    std::vector<v1::TaskMessage> unheard;
    bool gave_way = false;
  };
  std::optional<Replaced> replaced_;
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
