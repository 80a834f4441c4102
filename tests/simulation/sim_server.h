#ifndef RUBATO_TESTS_SIMULATION_SIM_SERVER_H_
#define RUBATO_TESTS_SIMULATION_SIM_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/rules/partition.h"
#include "tests/simulation/control_link.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {

// A server's process: the real rules of its partitions, each of which gets directives a little later than the others.
// The weights are left out. Not thread-safe.
class SimServer {
 public:
  using Answer = std::function<void(const v1::ExchangeReply&)>;

  // `world` and `host` must outlive it.
  SimServer(World* world, CoordinatorHost* host, uint32_t index);
  ~SimServer();

  // A request has come over the wire; its token is assigned here.
  void OnRequest(uint32_t partition, server::PartitionRequest request, Answer answer);
  // The stream to this task broke: forgets what is open.
  void ForgetTask(const v1::TaskId& task);

  // Whom its requests wait for, for people; empty when there are none.
  std::string Describe();

 private:
  class SimPartition;

  void OnDirective(const v1::Directive& directive);
  void StartJob(const v1::JobDescription& job);
  void Announce(uint64_t generation);
  void Commit(const v1::Plan& plan);
  // Runs `work` on each partition, in order with other such work, and `done` after the last.
  void OnEachPartition(std::function<void(SimPartition&)> work, std::function<void()> done);
  void Tick();

  World* const world_;
  const uint32_t index_;
  ControlLink link_;
  std::vector<std::unique_ptr<SimPartition>> partitions_;
};

}  // namespace rubato::simulation

#endif  // RUBATO_TESTS_SIMULATION_SIM_SERVER_H_
