#ifndef RUBATO_TESTS_SIMULATION_SIM_WORKER_H_
#define RUBATO_TESTS_SIMULATION_SIM_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/rules/push_hyperparameters.h"
#include "tests/simulation/checkpoint_part.h"
#include "tests/simulation/chunk_groups.h"
#include "tests/simulation/control_link.h"
#include "tests/simulation/server_directory.h"
#include "tests/simulation/sim_data.h"
#include "tests/simulation/sim_rows.h"
#include "tests/simulation/sim_server.h"
#include "tests/simulation/world.h"
#include "worker/ps_client/step_machine.h"

namespace rubato::simulation {

// A worker from its registration to its end, which may be another beginning in the same process: the real step machine,
// with the trainer's loop, the data and the connections modelled. Forward takes the batches in order as their weights
// come, backward pushes them in the opposite order. What it keeps between steps, and finds again in a checkpoint, is
// how many it has done. Not thread-safe.
class SimWorker : private worker::StepMachine::Sink {
 public:
  enum class State { kRuns, kDone, kDead };

  // All must outlive it.
  SimWorker(World* world, CoordinatorHost* host, ServerDirectory* servers, uint32_t index);

  // The process dies.
  void Kill(const std::string& why);
  void Freeze(absl::Duration length);
  // What is in flight to and from this server is lost; a new stream comes up after a while.
  void BreakStream(uint32_t server);

  State state() const { return state_; }
  // Whether it has done its part, and is there until the job has ended.
  bool waits() const { return state_ == State::kDone && !link_.closed(); }
  const v1::TaskId& task() const { return link_.task(); }
  // What it does, for people.
  std::string Describe() const;

 private:
  enum class Phase { kStarting, kForward, kBackward, kLeaving };

  void Send(const worker::StepMachine::Request& request) override;
  server::PartitionRequest ToWire(const worker::StepMachine::Request& request) const;
  // What it says of rows, if it is about some.
  std::optional<RowMessage> RowsOf(const worker::StepMachine::Request& request);
  // As a server reads what the push of `step` says of them. Null: nothing.
  std::shared_ptr<const server::PushHyperparameters> ReadHyperparameters(int64_t step) const;
  void OnReply(const worker::StepMachine::Request& request, uint32_t stream, v1::ExchangeReply reply);
  void StoreVersions(const v1::ExchangeReply& reply);
  void OnDirective(const v1::Directive& directive);
  void JoinJob(const v1::JobDescription& job);
  void MaybeStart(const v1::Plan& plan);
  // Sends the initial weights of this group until they are taken.
  void Assign(size_t batch);
  void EnterCut(const v1::Cut& cut);
  // Whether the job has not gone back to a checkpoint since it began with it.
  bool IsInNewestJob() const { return world_->oracle.IsNewest(job_); }
  v1::TaskMessage HeartbeatMessage();
  void Heartbeat();

  // Goes on with whatever can be done now.
  void Advance();
  void AdvanceForward();
  void BeginStep();
  void AdvanceBackward();
  void EndStep();
  void TakeExamples();
  // A client's job: whether it has no gradient of the chunk in the step that it is in.
  bool IsAbsent(uint32_t chunk) const;
  // The process ends.
  void HangUp();
  void ForgetRequests();
  // Runs `then` when one layer's computation is over, and the process still lives.
  void Compute(std::function<void()> then);

  World* const world_;
  CoordinatorHost* const host_;
  ServerDirectory* const servers_;
  uint64_t job_ = 0;  // Its fingerprint.
  std::vector<ChunkGroup> batches_;
  std::optional<SimRows> rows_;                      // Once it is in a job.
  absl::flat_hash_map<uint32_t, int64_t> versions_;  // By chunk: of the weights that it has.
  std::vector<uint32_t> streams_;                    // By server: the number of the stream; odd while it is broken.
  ControlLink link_;
  CheckpointPart part_;
  SimData data_;
  std::vector<bool> assigned_;                  // By batch; empty: it is not the one that assigns weights.
  std::optional<worker::StepMachine> machine_;  // Once it is told a plan that it is in.

  State state_ = State::kRuns;
  Phase phase_ = Phase::kStarting;
  bool frozen_ = false;
  bool computing_ = false;
  int layer_ = 0;  // Forward: the next batch to use. Backward: the next to push.
  int64_t steps_ = 0;
  int64_t examples_ = 0;  // Of the step that it is in.
  v1::ShardSlice slice_;
  std::pair<uint64_t, int64_t> last_ = {0, -1};  // Generation and step that it began last.
  std::string why_dead_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_WORKER_H_
