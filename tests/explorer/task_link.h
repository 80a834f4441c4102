#ifndef RUBATO_TESTS_EXPLORER_TASK_LINK_H_
#define RUBATO_TESTS_EXPLORER_TASK_LINK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/task.h"
#include "tests/explorer/model.h"

namespace rubato::explorer {

// A task's session with the coordinator. It keeps the order of what the coordinator says, and of what a worker says; a
// server's threads speak for themselves. When the coordinator is started again, what was in flight to it is lost; when
// the task notices, so is what is in flight to the task, and it registers again. Not thread-safe.
class TaskLink {
 public:
  struct Options {
    v1::TaskId task;
    uint64_t actor = 0;
    // What happens in them comes before or after the session ends.
    std::vector<uint64_t> threads = {};
    // The highest term that the process before had heard of.
    uint64_t term = 0;
    std::function<void(const v1::Directive&)> receiver;
    // The session has ended, and on the next one Register is sent: says what comes after it.
    std::function<void()> on_new_session;
  };

  // Registers. `model` must outlive it.
  TaskLink(Model* model, Options options);

  void Send(v1::TaskMessage message);
  // The coordinator hears it at once.
  void SendNow(v1::TaskMessage message);
  // The coordinator says something.
  void Receive(const v1::Directive& directive);
  // It hears it at once.
  void ReceiveNow(const v1::Directive& directive);
  // The coordinator knows that the task leaves.
  void ReceiveFarewell();
  // The coordinator was started again; its sessions have this number, and it speaks in this term.
  void EndSession(uint64_t session, uint64_t term);
  // The process is gone: it hears nothing any more. What it has said may still come.
  void Close();

  const v1::TaskId& task() const { return options_.task; }
  uint64_t actor() const { return options_.actor; }
  uint64_t term() const { return term_; }
  bool closed() const { return closed_; }
  // Of what is in flight to it, and from it.
  uint64_t to_task() const { return FingerprintOf("to task", task().incarnation()); }
  uint64_t to_coordinator() const { return FingerprintOf("to coordinator", task().incarnation()); }

 private:
  void Register();
  void BeginSession(uint64_t session, uint64_t term);

  Model* const model_;
  const Options options_;
  uint64_t session_;
  uint64_t term_;  // The highest that it has heard of.
  bool closed_ = false;
};

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_TASK_LINK_H_
