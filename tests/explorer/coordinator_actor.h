#ifndef RUBATO_TESTS_EXPLORER_COORDINATOR_ACTOR_H_
#define RUBATO_TESTS_EXPLORER_COORDINATOR_ACTOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/rules/coordinator_core.h"
#include "tests/explorer/model.h"

namespace rubato::explorer {

class TaskLink;

// The coordinator's process around the real core, and its journal, which survives it. After every input the core is
// ticked, at the same time. Not thread-safe.
class CoordinatorActor {
 public:
  // `model` must outlive it.
  explicit CoordinatorActor(Model* model);

  // From now on this task can be spoken to; it must outlive the coordinator.
  void Attach(TaskLink* link);
  void OnMessage(const v1::TaskMessage& message);
  // From now on the operator may come.
  void OfferRequests();
  // From now on it may die, if the scope has that.
  void OfferFaults();
  // This task has died: its lease may be over at any time.
  void AwaitLease(const v1::TaskId& dead);

  bool training() const { return core_ != nullptr && core_->phase() == v1::JobStatus::TRAINING; }
  // Generation of the plan that the job began with, or went on with after its last rollback.
  uint64_t first_generation() const { return first_generation_; }
  // Number of the sessions that tasks have with it; another one when it is started again.
  uint64_t session() const { return session_; }
  // Whether this process has registered in this session.
  bool HasSessionOf(uint64_t incarnation) const { return registered_.contains(incarnation); }
  // Of what it is: equal for two orders of the same inputs if they differ only between inputs that it did nothing at,
  // and for a core that has begun with the same journal. Messages of one task keep their order, and what it learns of
  // one task does not depend on another one's.
  uint64_t Fingerprint() const;
  // What it knows and waits for, for people.
  std::string Describe() const;

 private:
  void Create();
  // A new core goes on from the journal.
  void Recover();
  // Of what a core learns from it: of the time before the last rollback, only which cuts there are.
  uint64_t FingerprintOfJournal() const;
  void RequestSwitch();
  void RequestCut();
  void EndLease(const v1::TaskId& dead);
  // An input was worked off; its content.
  void Took(uint64_t input);
  // What the core asks for at an input, and at the tick after it: it is done, or may be interrupted. `input`: its
  // content, or 0 if the core is what it was. `waits`: of several such inputs the core is the same in any
  // order.
  void Do(coordinator::Actions actions, uint64_t input, bool waits);
  // Before which of these actions a death is another one than at the beginning or the end: before the records that are
  // not the first thing that others can know of. What is sent after them may get lost anyway.
  std::vector<size_t> WhereToDie(const coordinator::Actions& actions) const;
  void DoAll(const coordinator::Actions& actions);
  void OfferDeathAmid(const coordinator::Actions& actions, const std::vector<size_t>& places);
  void Die();
  void Perform(const coordinator::Actions& actions);
  void PerformOne(const coordinator::Action& action);
  void Write(const v1::JournalRecord& record);
  void OnRollback(const v1::JournalTerm& term);
  // Whether somebody takes notice of it.
  bool Reaches(const coordinator::SendDirective& send) const;
  void Send(const coordinator::SendDirective& send);
  void Finish(const absl::Status& status);

  Model* const model_;
  std::map<uint64_t, TaskLink*> links_;  // By incarnation.
  std::vector<v1::JournalRecord> journal_;
  std::unique_ptr<coordinator::CoordinatorCore> core_;
  uint64_t cores_ = 0;
  uint64_t session_ = 1;
  std::set<uint64_t> registered_;  // Incarnations.
  TaskLink* leaving_ = nullptr;    // Who is to hear that what it has said is done.
  uint64_t term_ = 0;
  uint64_t first_generation_ = 1;
  absl::Time now_ = Start();
  bool finished_ = false;
  bool may_die_ = false;
  bool acted_ = false;    // At the input that is being worked off.
  uint64_t history_ = 0;  // Of the inputs up to the last one at which it did something.
  uint64_t since_ = 0;    // The sum of those after it.
  uint64_t last_ticket_ = 0;
};

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_COORDINATOR_ACTOR_H_
