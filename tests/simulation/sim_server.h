#ifndef RUBATO_TESTS_SIMULATION_SIM_SERVER_H_
#define RUBATO_TESTS_SIMULATION_SIM_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/rules/partition.h"
#include "tests/simulation/checkpoint_part.h"
#include "tests/simulation/control_link.h"
#include "tests/simulation/server_directory.h"
#include "tests/simulation/sim_partition.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {

// A server from its registration to its end, which may be another beginning in the same process: its partitions, each
// of which gets directives a little later than the others, and its parts of checkpoints. Not thread-safe.
class SimServer {
 public:
  using Answer = SimPartition::SendReply;

  // All must outlive it.
  SimServer(World* world, CoordinatorHost* host, ServerDirectory* directory, uint32_t index);
  // The process dies. It is started again `back` later; an infinite time means never.
  void Crash(absl::Duration back);
  void Freeze(absl::Duration length);

  // A request of somebody who is in `job` has come over the wire; its token is assigned here.
  // `rows`: what it says of rows, unless it is about tensors.
  void OnRequest(uint64_t job, uint32_t partition, server::PartitionRequest request, std::optional<RowMessage> rows,
                 Answer answer);
  // A client assigns the weights of these chunks.
  void OnAssign(uint64_t job, uint32_t partition, const v1::TaskId& worker, std::vector<uint32_t> chunks,
                Answer answer);
  // The stream to this task broke: forgets what is open.
  void ForgetTask(const v1::TaskId& task);

  bool alive() const { return alive_; }
  // Whom its requests wait for, for people; empty when there are none.
  std::string Describe();

 private:
  void OnDirective(const v1::Directive& directive);
  std::unique_ptr<SimPartition> MakePartition(const v1::JobDescription& job, uint32_t partition,
                                              std::vector<uint32_t> chunks);
  void StartJob(const v1::JobDescription& job);
  // Says that it has written the first checkpoint, when it was asked for and all weights are there.
  void WriteFirstCheckpoint();
  void WriteCheckpoint(const std::string& name);
  void Announce(uint64_t generation);
  void Commit(const v1::Plan& plan);
  void BeginCut(const v1::Cut& cut);
  void OnCaptured(const v1::Cut& cut, uint32_t chunk, const ChunkState& state);
  // Ends what it does, and starts again a while later.
  void End(const std::string& why, absl::Duration back);
  // Runs `work` on each partition, in order with other such work, and `done` after the last.
  void OnEachPartition(std::function<void(SimPartition&)> work, std::function<void()> done);
  void Tick();

  World* const world_;
  ServerDirectory* const directory_;
  const uint32_t index_;
  ControlLink link_;
  bool alive_ = true;
  bool frozen_ = false;
  uint64_t job_ = 0;  // Its fingerprint; 0 before it has started.
  std::vector<std::unique_ptr<SimPartition>> partitions_;
  std::vector<uint32_t> servers_;  // Of the job, by index.
  size_t chunks_ = 0;              // In all partitions.
  bool first_checkpoint_asked_ = false;
  std::map<uint32_t, ChunkState> captured_;
  CheckpointPart part_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_SERVER_H_
