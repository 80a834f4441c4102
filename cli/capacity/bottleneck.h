#ifndef RUBATO_CLI_CAPACITY_BOTTLENECK_H_
#define RUBATO_CLI_CAPACITY_BOTTLENECK_H_

#include <optional>
#include <string>

#include "cli/capacity/job_layout.h"
#include "cli/capacity/simulation.h"

namespace rubato::capacity {

// What keeps a job from training more examples a second.
struct Bottleneck {
  // "computing", "barrier", "latency", or the resource: "partition", "server transport", "server link in",
  // "server link out", "worker transport", "worker link in", "worker link out", "processors".
  std::string name;
  // What it is and how much of it there is, and what to change. A sentence each.
  std::string finding;
  std::string advice;
};

// The largest part of a worker's step in which it does not compute, if that is a part worth mentioning, and if that is
// exchanges the busiest resource that they use. Pure.
Bottleneck FindBottleneck(const JobLayout& layout, const SimulationResult& result);

// At how many workers the resource that they share most of would be busy all the time: where a worker's step without
// queues takes as long as the resource needs for one step of each (the asymptotic bound of Denning and Buzen 1978, "The
// operational analysis of queueing network models"). Nothing if they share none. Pure.
struct Saturation {
  double workers = 0;
  std::string resource;
};
std::optional<Saturation> FindSaturation(const JobLayout& layout, const SimulationResult& result);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_BOTTLENECK_H_
