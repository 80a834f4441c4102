#ifndef RUBATO_CLI_CAPACITY_SIMULATED_CLUSTER_H_
#define RUBATO_CLI_CAPACITY_SIMULATED_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "cli/capacity/costs.h"
#include "cli/capacity/event_queue.h"
#include "cli/capacity/exchange.h"
#include "cli/capacity/job_layout.h"
#include "cli/capacity/network.h"
#include "cli/capacity/service_queue.h"
#include "cli/capacity/step_observer.h"
#include "common/network_link/link_model.h"

namespace rubato::capacity {

// What workers and servers of a simulation share: time, the network, and what is on its way. Not thread-safe.
struct SimulatedCluster {
  struct Options {
    // All outlive it.
    const JobLayout* layout = nullptr;
    const Costs* costs = nullptr;
    StepObserver* observer = nullptr;
    // By worker and by server; empty: none is slow.
    std::vector<LinkModel> worker_links = {};
    std::vector<LinkModel> server_links = {};
    // Payload does not go over links: it is read where it is.
    bool in_place = false;
    // Processors of the one machine that all tasks share. 0: each has a machine with as many as it needs.
    int shared_processors = 0;
    // Threads that move a worker's messages at the same time; a server has one.
    int worker_threads = 1;
  };

  explicit SimulatedCluster(const Options& options);
  SimulatedCluster(const SimulatedCluster&) = delete;
  SimulatedCluster& operator=(const SimulatedCluster&) = delete;

  uint64_t SlotOf(uint32_t worker, int batch) const {
    return uint64_t{worker} * static_cast<uint64_t>(layout.batches()) + static_cast<uint64_t>(batch);
  }
  uint32_t WorkerOf(uint64_t slot) const {
    return static_cast<uint32_t>(slot / static_cast<uint64_t>(layout.batches()));
  }
  // When work that begins now is done, and when it got a processor. Of shared ones it needs its part alone.
  ServiceQueue::Service Work(SimTime duration);
  // The simulation is wrong, and ends with the first such error.
  void Fail(const absl::Status& status) { failed.Update(status); }
  // The version of a chunk's weights that the worker has.
  uint32_t& VersionAt(uint32_t worker, uint32_t chunk) { return versions[worker * layout.chunk_bytes.size() + chunk]; }

  const JobLayout& layout;
  const Costs& costs;
  StepObserver* const observer;
  EventQueue queue;
  // Of one machine for all; null: there is none.
  std::unique_ptr<ServiceQueue> processors;
  std::vector<std::unique_ptr<ServiceQueue>> transports;
  std::vector<Endpoint> workers;
  std::vector<Endpoint> servers;
  std::vector<Exchange> exchanges;
  std::vector<uint32_t> versions;
  Network network;
  absl::Status failed;
  // Who is told of a message's slot: by worker, and by batch its partition. Set by whoever makes them, before the first
  // message.
  std::vector<EventTarget*> worker_targets;
  std::vector<EventTarget*> partition_targets;
};

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_SIMULATED_CLUSTER_H_
