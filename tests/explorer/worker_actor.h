#ifndef RUBATO_TESTS_EXPLORER_WORKER_ACTOR_H_
#define RUBATO_TESTS_EXPLORER_WORKER_ACTOR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/explorer/model.h"
#include "tests/explorer/server_actor.h"
#include "tests/explorer/task_link.h"
#include "tests/simulation/chunk_groups.h"
#include "worker/ps_client/step_machine.h"

namespace rubato::explorer {

// A worker's process: the real step machine with the trainer's loop. Forward takes no time of its own: its end is when
// the last weights come. Backward pushes the batches in the opposite order; between two of them, and between the news
// that a step was moved and the restart, anything else may happen. Not thread-safe.
class WorkerActor : private worker::StepMachine::Sink {
 public:
  enum class State { kRuns, kDone, kDead };

  // `model` must outlive it.
  // `term`: the highest that the process before it had heard of.
  WorkerActor(Model* model, uint32_t index, uint64_t term);

  // An answer is in flight.
  void ReceiveReply(const Stream& stream, uint64_t id, const v1::ExchangeReply& reply);
  // From now on it may die, and its streams may break, if the scope has that.
  void OfferFaults();

  State state() const { return state_; }
  // Of which it knows; 0 for none.
  uint64_t job() const { return job_; }
  // Whether it has begun to work, from when on it learns of plans from servers alone.
  bool works() const { return machine_.has_value(); }
  // Appends all that what comes later depends on.
  void AppendState(std::string* state) const;
  // What it does, for people.
  std::string Describe() const;

 private:
  enum class Phase { kStarting, kForward, kBackward, kEnding };

  void Send(const worker::StepMachine::Request& request) override;
  void OnReply(uint64_t id, const v1::ExchangeReply& reply);
  void OnDirective(const v1::Directive& directive);
  void OnNewSession();
  void JoinJob(const v1::JobDescription& job);
  // Null if the process is gone that it knows of.
  ServerActor* Reach(uint32_t server) const;
  void MaybeStart(const v1::Plan& plan);
  void EnterCut(const v1::Cut& cut);
  void WritePart(const v1::Cut& cut);
  // Whether the coordinator may wait for a heartbeat, before it changes the plan.
  bool IsAwaited() const;
  void Heartbeat();
  v1::TaskMessage HeartbeatMessage() const;

  // Goes on with whatever takes no time.
  void Advance();
  void BeginStep();
  // What takes time: it ends at any moment from now on.
  void Compute(uint64_t what, const char* name, void (WorkerActor::*then)());
  void Restart();
  void PushNext();
  void End();
  void Leave();
  // The process ends before its time.
  void Vanish();
  void Die();
  void BreakStream(uint32_t server);
  void CloseStreams();

  const v1::TaskId& task() const { return link_.task(); }
  Stream StreamTo(uint32_t server) const { return {task(), server, streams_[server]}; }
  // Of what it does by itself.
  uint64_t OwnTag() const { return FingerprintOf("own", task().incarnation()); }

  Model* const model_;
  TaskLink link_;
  std::vector<simulation::ChunkGroup> batches_;
  std::map<uint32_t, v1::TaskId> servers_;  // By index: the processes that have the chunks.
  std::vector<uint64_t> streams_;           // By server: number of the stream.
  std::optional<worker::StepMachine> machine_;
  uint64_t job_ = 0;
  State state_ = State::kRuns;
  Phase phase_ = Phase::kStarting;
  bool restarts_ = false;  // Is to ask again, for the step that it was moved to.
  int to_push_ = -1;       // Backward: the next batch.
  int64_t steps_ = 0;
  std::pair<uint64_t, int64_t> last_ = {0, -1};  // Generation and step that it began last.
  v1::CutProgress cut_;
};

}  // namespace rubato::explorer

#endif  // RUBATO_TESTS_EXPLORER_WORKER_ACTOR_H_
