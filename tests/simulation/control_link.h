#ifndef RUBATO_TESTS_SIMULATION_CONTROL_LINK_H_
#define RUBATO_TESTS_SIMULATION_CONTROL_LINK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "proto/coordinator.pb.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {

class CoordinatorHost;

// A task's session with the coordinator, over the bad network. A real stream loses something only when it breaks, and
// the task registers again then; here messages are lost and the task registers again now and then. What an earlier
// coordinator sent is dropped once a session with the next one is there, and what was said in an earlier term once a
// later one is heard of. What to remove from the disk comes in order or not at all, because that is not said again, and
// a real stream keeps its order. Not thread-safe.
class ControlLink {
 public:
  using Receiver = std::function<void(const v1::Directive&)>;

  // `world` and `host` must outlive it.
  ControlLink(World* world, CoordinatorHost* host, const v1::TaskId& task, Receiver receiver);

  // Registers until the coordinator answers, and then now and then.
  void Connect();
  // Registers as a worker that has done its part with these counts, and so from now on.
  void RegisterDone(const v1::WorkerProgress& done);
  // The task is gone: neither sends nor receives any more.
  void Close() { closed_ = true; }
  // Nothing passes for a while.
  void SetFrozen(bool frozen) { frozen_ = frozen; }
  void Send(v1::TaskMessage message) { Send(std::vector<v1::TaskMessage>{std::move(message)}); }
  // One right after the other, as on a stream.
  void Send(std::vector<v1::TaskMessage> messages);

  // The coordinator died.
  void Broken();
  // `number` grows with each that is sent.
  void Deliver(uint64_t epoch, uint64_t number, const v1::Directive& directive);

  const v1::TaskId& task() const { return task_; }
  bool closed() const { return closed_; }

 private:
  void Register(uint64_t session);
  void SendRegister();

  World* const world_;
  CoordinatorHost* const host_;
  const v1::TaskId task_;
  const Receiver receiver_;
  uint64_t epoch_ = 0;         // Of the coordinator that the session is with; 0 for none.
  uint64_t newest_epoch_ = 0;  // Of the last session.
  uint64_t session_ = 0;       // Counts breaks.
  uint64_t term_ = 0;          // The highest that it has heard of.
  uint64_t newest_ = 0;        // Number of the newest directive.
  std::optional<v1::WorkerProgress> done_;
  bool closed_ = false;
  bool frozen_ = false;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_CONTROL_LINK_H_
