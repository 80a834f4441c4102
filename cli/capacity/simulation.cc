#include "cli/capacity/simulation.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/capacity/simulated_cluster.h"
#include "cli/capacity/simulated_partition.h"
#include "cli/capacity/simulated_worker.h"
#include "cli/capacity/step_tally.h"

namespace rubato::capacity {
namespace {

// How long each resource has been busy, when it was looked at.
struct Usage {
  SimTime at = 0;
  std::vector<SimTime> partitions;
  // By endpoint, workers first.
  std::vector<SimTime> transport, up, down;
  SimTime processors = 0;
  int64_t updates = 0;
  int64_t contributions = 0;
};

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options);

  absl::StatusOr<SimulationResult> Run();

 private:
  void MakePartitions();
  void MakeWorkers(const SimulationOptions& options);
  Usage Look() const;
  SimulationResult Summarize(const Usage& begin, const Usage& end) const;
  void AddLoads(const Usage& begin, const Usage& end, SimulationResult* result) const;

  SimulatedCluster cluster_;
  StepTally tally_;
  std::vector<std::unique_ptr<SimulatedPartition>> partitions_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
};

Simulation::Simulation(const SimulationOptions& options)
    : cluster_({.layout = options.layout,
                .costs = options.costs,
                .observer = &tally_,
                .worker_links = options.worker_links,
                .server_links = options.server_links,
                .in_place = options.in_place,
                .shared_processors = options.shared_processors,
                .worker_threads = options.worker_threads}),
      tally_({.queue = &cluster_.queue, .workers = options.layout->workers(), .rounds = options.steps}) {
  MakePartitions();
  MakeWorkers(options);
}

void Simulation::MakePartitions() {
  const JobLayout& layout = cluster_.layout;
  std::vector<std::vector<uint32_t>> chunks(static_cast<size_t>(layout.servers() * layout.partitions_per_server()));
  const auto place = [&layout](uint32_t server, uint32_t partition) {
    return server * static_cast<size_t>(layout.partitions_per_server()) + partition;
  };
  for (int chunk = 0; chunk < layout.job.chunks_size(); ++chunk) {
    const v1::ChunkPlacement& placement = layout.job.chunks(chunk);
    chunks[place(placement.server(), placement.partition())].push_back(static_cast<uint32_t>(chunk));
  }
  std::vector<EventTarget*> at(chunks.size(), nullptr);
  for (size_t i = 0; i < chunks.size(); ++i) {
    if (chunks[i].empty()) continue;
    const auto server = static_cast<uint32_t>(i / static_cast<size_t>(layout.partitions_per_server()));
    at[i] = partitions_.emplace_back(std::make_unique<SimulatedPartition>(&cluster_, server, chunks[i])).get();
  }
  for (const worker::ChunkBatch& batch : layout.batching.batches) {
    cluster_.partition_targets.push_back(at[place(batch.server, batch.partition)]);
  }
}

void Simulation::MakeWorkers(const SimulationOptions& options) {
  const auto count = static_cast<uint32_t>(cluster_.layout.workers());
  for (uint32_t worker = 0; worker < count; ++worker) {
    StepSource::Options steps = {.steps = &cluster_.costs.steps, .seed = options.seed, .worker = worker};
    if (options.stragglers.has_value()) {
      steps.straggler.emplace((*options.stragglers)[worker],
                              Straggler::Place{.seed = options.seed, .worker = worker, .workers = count});
    }
    workers_.push_back(std::make_unique<SimulatedWorker>(&cluster_, worker, StepSource(std::move(steps))));
    cluster_.worker_targets.push_back(workers_.back().get());
  }
}

absl::StatusOr<SimulationResult> Simulation::Run() {
  for (auto& worker : workers_) worker->Start();
  Usage begin;
  bool warm = false;
  while (!tally_.done()) {
    if (!cluster_.queue.RunNext()) return absl::InternalError("the simulation stands still: nobody has anything to do");
    if (!cluster_.failed.ok()) return absl::InternalError(absl::StrCat("the rules: ", cluster_.failed.message()));
    if (warm || !tally_.warm()) continue;
    warm = true;
    begin = Look();
  }
  return Summarize(begin, Look());
}

Usage Simulation::Look() const {
  Usage usage = {.at = cluster_.queue.now()};
  for (const auto& partition : partitions_) usage.partitions.push_back(partition->busy());
  for (const std::vector<Endpoint>* endpoints : {&cluster_.workers, &cluster_.servers}) {
    for (const Endpoint& endpoint : *endpoints) {
      usage.transport.push_back(endpoint.transport->busy());
      usage.up.push_back(endpoint.up.busy());
      usage.down.push_back(endpoint.down.busy());
    }
  }
  if (cluster_.processors != nullptr) usage.processors = cluster_.processors->busy();
  usage.updates = partitions_.front()->updates();
  usage.contributions = partitions_.front()->contributions();
  return usage;
}

SimulationResult Simulation::Summarize(const Usage& begin, const Usage& end) const {
  const double seconds = ToSeconds(end.at - begin.at);
  const auto steps = static_cast<double>(tally_.steps());
  const StepParts& parts = tally_.parts();
  const auto mean = [steps](SimTime total) { return ToSeconds(total) / steps; };
  SimulationResult result;
  result.steps = tally_.steps();
  result.virtual_seconds = seconds;
  result.events = cluster_.queue.run();
  result.worker_steps_per_second = tally_.rate();
  result.worker_steps_error = tally_.rate_error();
  result.updates_per_second = static_cast<double>(end.updates - begin.updates) / seconds;
  result.contributions_per_second = static_cast<double>(end.contributions - begin.contributions) / seconds;
  result.step = {.total = mean(parts.total()),
                 .computing = mean(parts.computing),
                 .barrier = mean(parts.barrier),
                 .network = mean(parts.network),
                 .server = mean(parts.server),
                 .queued = mean(parts.queued),
                 .p50 = tally_.StepQuantile(0.5),
                 .p99 = tally_.StepQuantile(0.99)};
  result.staleness_mean = tally_.staleness_mean();
  result.staleness_p99 = tally_.StalenessQuantile(0.99);
  AddLoads(begin, end, &result);
  return result;
}

void Simulation::AddLoads(const Usage& begin, const Usage& end, SimulationResult* result) const {
  const auto share = [time = static_cast<double>(end.at - begin.at)](SimTime from, SimTime to) {
    return static_cast<double>(to - from) / time;
  };
  // Those that all tasks share are counted once.
  const bool own = cluster_.processors == nullptr;
  const auto transport = [&](size_t i) { return own ? share(begin.transport[i], end.transport[i]) : 0; };
  const size_t workers = cluster_.workers.size();
  for (size_t i = 0; i < workers; ++i) {
    WorkerLoad& most = result->busiest_worker;
    most.transport = std::max(most.transport, transport(i) / cluster_.workers[i].transport->places());
    most.link_in = std::max(most.link_in, share(begin.down[i], end.down[i]));
    most.link_out = std::max(most.link_out, share(begin.up[i], end.up[i]));
  }
  for (size_t server = 0; server < cluster_.servers.size(); ++server) {
    const size_t i = workers + server;
    result->servers.push_back({.server = static_cast<uint32_t>(server),
                               .transport = transport(i),
                               .link_in = share(begin.down[i], end.down[i]),
                               .link_out = share(begin.up[i], end.up[i])});
  }
  for (size_t i = 0; i < partitions_.size(); ++i) {
    double& most = result->servers[partitions_[i]->server()].partition;
    most = std::max(most, share(begin.partitions[i], end.partitions[i]));
  }
  if (!own) result->processors = share(begin.processors, end.processors) / cluster_.processors->places();
}

}  // namespace

absl::StatusOr<SimulationResult> Simulate(const SimulationOptions& options) { return Simulation(options).Run(); }

}  // namespace rubato::capacity
