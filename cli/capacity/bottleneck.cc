#include "cli/capacity/bottleneck.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rubato::capacity {
namespace {

// A smaller part of a step is not worth a change.
constexpr double kWorthMentioning = 0.15;
// What is busy for less of the time is not what exchanges wait for.
constexpr double kBusy = 0.3;
constexpr double kFull = 0.85;

struct Resource {
  std::string name;
  std::string where;
  double busy = 0;
  // Workers share it.
  bool shared = true;
  std::string advice;
};

constexpr char kFewerExchanges[] = "fewer exchanges (training.batch_size, consistency.sync_every)";

void AddServers(const SimulationResult& result, std::vector<Resource>* resources) {
  const auto add = [&](const std::string& name, double ServerLoad::*load, std::string advice) {
    const auto most = std::max_element(result.servers.begin(), result.servers.end(),
                                       [load](const ServerLoad& a, const ServerLoad& b) { return a.*load < b.*load; });
    if (most == result.servers.end()) return;
    resources->push_back({name, absl::StrCat(" of server ", most->server), (*most).*load, true, std::move(advice)});
  };
  add("partition", &ServerLoad::partition,
      absl::StrCat("more servers, more partitions on each where there are processors for them "
                   "(cluster.partitions_per_server), or ",
                   kFewerExchanges));
  add("server transport", &ServerLoad::transport,
      absl::StrCat("more servers, fewer and larger messages (cluster.message_bytes, cluster.chunk_bytes), or ",
                   kFewerExchanges));
  add("server link in", &ServerLoad::link_in, absl::StrCat("more servers, compression.push, or ", kFewerExchanges));
  add("server link out", &ServerLoad::link_out, absl::StrCat("more servers, compression.pull, or ", kFewerExchanges));
}

std::vector<Resource> ResourcesOf(const SimulationResult& result) {
  std::vector<Resource> resources;
  AddServers(result, &resources);
  const WorkerLoad& worker = result.busiest_worker;
  const auto add = [&](const std::string& name, double busy, absl::string_view advice) {
    resources.push_back({name, "", busy, false, absl::StrCat(advice, ", or ", kFewerExchanges)});
  };
  add("worker transport", worker.transport, "fewer and larger messages (cluster.message_bytes, fewer servers)");
  add("worker link in", worker.link_in, "compression.pull");
  add("worker link out", worker.link_out, "compression.push");
  if (result.processors > 0) {
    resources.push_back(
        {"processors", " that all tasks share", result.processors, true, "tasks on more machines, or fewer workers"});
  }
  return resources;
}

const Resource& BusiestOf(const std::vector<Resource>& resources) {
  return *std::max_element(resources.begin(), resources.end(),
                           [](const Resource& a, const Resource& b) { return a.busy < b.busy; });
}

std::string Percent(double share) { return absl::StrFormat("%.0f %%", 100 * share); }

Bottleneck BarrierOf(const JobLayout& layout, double share) {
  const std::string finding =
      absl::StrCat("A worker waits for the steps of others for ", Percent(share), " of the time.");
  if (layout.plan.mode() == v1::SSP) {
    return {"barrier", finding, "Change: a larger consistency.staleness_bound, or ASYNC; workers of the same speed."};
  }
  return {"barrier", finding,
          "Change: a quorum (consistency.quorum), SSP or ASYNC; consistency.policy STRAGGLER or BALANCE where the same "
          "workers "
          "are always slow."};
}

}  // namespace

Bottleneck FindBottleneck(const JobLayout& layout, const SimulationResult& result) {
  const std::vector<Resource> resources = ResourcesOf(result);
  const Resource& busiest = BusiestOf(resources);
  if (busiest.name == "processors" && busiest.busy >= kFull) {
    return {busiest.name,
            absl::StrCat("The processors that all tasks share are busy for ", Percent(busiest.busy), " of the time."),
            absl::StrCat("Change: ", busiest.advice, ".")};
  }
  const double total = result.step.total;
  const double barrier = result.step.barrier / total;
  const double exchanges = (result.step.network + result.step.server) / total;
  if (std::max(barrier, exchanges) < kWorthMentioning) {
    return {"computing", absl::StrCat("Workers compute for ", Percent(result.step.computing / total), " of the time."),
            "Change: more or faster workers."};
  }
  if (barrier >= exchanges) return BarrierOf(layout, barrier);
  const std::string finding =
      absl::StrCat("A worker waits for its exchanges for ", Percent(exchanges), " of the time (busiest: ", busiest.name,
                   busiest.where, ", ", Percent(busiest.busy), ").");
  if (busiest.busy < kBusy) {
    return {"latency", finding,
            absl::StrCat("Change: a network with less latency, fewer and larger messages, or ", kFewerExchanges, ".")};
  }
  return {busiest.name, finding, absl::StrCat("Change: ", busiest.advice, ".")};
}

std::optional<Saturation> FindSaturation(const JobLayout& layout, const SimulationResult& result) {
  std::vector<Resource> shared;
  for (Resource& resource : ResourcesOf(result)) {
    if (resource.shared) shared.push_back(std::move(resource));
  }
  if (shared.empty()) return std::nullopt;
  const Resource& busiest = BusiestOf(shared);
  if (busiest.busy <= 0) return std::nullopt;
  const double without_queues = result.step.total - result.step.queued;
  return Saturation{layout.workers() * without_queues / (busiest.busy * result.step.total),
                    absl::StrCat(busiest.name, busiest.where)};
}

}  // namespace rubato::capacity
