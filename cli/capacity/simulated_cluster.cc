#include "cli/capacity/simulated_cluster.h"

namespace rubato::capacity {
namespace {

size_t SlotsOf(const JobLayout& layout) {
  return static_cast<size_t>(layout.workers()) * static_cast<size_t>(layout.batches());
}

}  // namespace

SimulatedCluster::SimulatedCluster(const Options& options)
    : layout(*options.layout),
      costs(*options.costs),
      observer(options.observer),
      workers(static_cast<size_t>(layout.workers())),
      servers(static_cast<size_t>(layout.servers())),
      exchanges(SlotsOf(layout)),
      versions(static_cast<size_t>(layout.workers()) * layout.chunk_bytes.size(), 0),
      network({.queue = &queue,
               .transport = costs.transport,
               .in_place = options.in_place,
               .processor_share = options.shared_processors > 0 ? costs.processor_share : 1,
               .slots = SlotsOf(layout)}) {
  if (options.shared_processors > 0) processors = std::make_unique<ServiceQueue>(options.shared_processors);
  const auto connect = [this](std::vector<Endpoint>& endpoints, const std::vector<LinkModel>& links, int threads) {
    for (size_t i = 0; i < endpoints.size(); ++i) {
      if (i < links.size()) endpoints[i].link = links[i];
      endpoints[i].transport = processors != nullptr
                                   ? processors.get()
                                   : transports.emplace_back(std::make_unique<ServiceQueue>(threads)).get();
    }
  };
  connect(workers, options.worker_links, options.worker_threads);
  connect(servers, options.server_links, 1);
}

ServiceQueue::Service SimulatedCluster::Work(SimTime duration) {
  const bool own = processors == nullptr;
  const SimTime begin =
      own ? queue.now()
          : processors->Serve(queue.now(), static_cast<SimTime>(costs.processor_share * static_cast<double>(duration)))
                .begin;
  return {begin, begin + duration};
}

}  // namespace rubato::capacity
