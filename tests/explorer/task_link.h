#ifndef RUBATO_TESTS_EXPLORER_TASK_LINK_H_
#define RUBATO_TESTS_EXPLORER_TASK_LINK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "common/task.h"
#include "tests/explorer/model.h"

namespace rubato::explorer {

// A task's session with the coordinator. It keeps the order of what the coordinator says, and of what a worker says; a
// server's threads speak for themselves. Not thread-safe.
class TaskLink {
 public:
  using Receiver = std::function<void(const v1::Directive&)>;

  // Registers. `model` must outlive it.
  TaskLink(Model* model, const v1::TaskId& task, uint64_t actor, Receiver receiver);

  void Send(v1::TaskMessage message);
  // The coordinator hears it at once.
  void SendNow(v1::TaskMessage message);
  // The coordinator says something.
  void Receive(const v1::Directive& directive);
  // It hears it at once.
  void ReceiveNow(const v1::Directive& directive);
  // The process is gone: it hears nothing any more. What it has said may still come.
  void Close();

  const v1::TaskId& task() const { return task_; }
  uint64_t actor() const { return actor_; }
  // Of what is under way to it, and from it.
  uint64_t to_task() const { return FingerprintOf("to task", task_.incarnation()); }
  uint64_t to_coordinator() const { return FingerprintOf("to coordinator", task_.incarnation()); }

 private:
  Model* const model_;
  const v1::TaskId task_;
  const uint64_t actor_;
  const Receiver receiver_;
  uint64_t term_ = 0;  // The highest that it has heard of.
  bool closed_ = false;
};

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_TASK_LINK_H_
