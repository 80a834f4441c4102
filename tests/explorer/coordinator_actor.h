#ifndef RUBATO_TESTS_EXPLORER_COORDINATOR_ACTOR_H_
#define RUBATO_TESTS_EXPLORER_COORDINATOR_ACTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/rules/coordinator_core.h"
#include "tests/explorer/model.h"

namespace rubato::explorer {

class TaskLink;

// The coordinator's process around the real core. After every input the core is ticked, at the same time. Not
// thread-safe.
class CoordinatorActor {
 public:
  // `model` must outlive it.
  explicit CoordinatorActor(Model* model);

  // From now on this task can be spoken to; it must outlive the coordinator.
  void Attach(TaskLink* link);
  void OnMessage(const v1::TaskMessage& message);
  // From now on the operator may come.
  void OfferRequests();
  // This task has died: its lease may be over at any time.
  void AwaitLease(const v1::TaskId& dead);

  bool training() const { return core_ != nullptr && core_->phase() == v1::JobStatus::TRAINING; }
  // Of what it is: equal for two orders of the same inputs if they differ only between inputs that it did nothing at.
  // Messages of one task keep their order, and what it learns of one task does not depend on another one's.
  uint64_t Fingerprint() const;
  // What it knows and waits for, for people.
  std::string Describe() const;

 private:
  void RequestSwitch();
  void RequestCut();
  void EndLease(const v1::TaskId& dead);
  // An input was worked off; its content.
  void Took(uint64_t input);
  void Perform(const coordinator::Actions& actions);
  void PerformOne(const coordinator::Action& action);
  void Write(const v1::JournalRecord& record);
  void Send(const coordinator::SendDirective& send);
  void Finish(const absl::Status& status);

  Model* const model_;
  std::map<uint64_t, TaskLink*> links_;  // By incarnation.
  std::unique_ptr<coordinator::CoordinatorCore> core_;
  absl::Time now_ = Start();
  bool finished_ = false;
  bool acted_ = false;    // At the input that is being worked off.
  uint64_t history_ = 0;  // Of the inputs up to the last one at which it did something.
  uint64_t since_ = 0;    // The sum of those after it.
  uint64_t last_ticket_ = 0;
};

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_COORDINATOR_ACTOR_H_
