#include "tests/simulation/simulation.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "tests/simulation/coordinator_host.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_evaluator.h"
#include "tests/simulation/sim_server.h"
#include "tests/simulation/sim_worker.h"
#include "tests/simulation/world.h"

namespace rubato::simulation {
namespace {

// With nothing going wrong any more, everybody who lives must be done by then.
constexpr absl::Duration kTimeToFinish = absl::Seconds(300);

class Simulation {
 public:
  explicit Simulation(const RunOptions& options);
  RunResult Run();

 private:
  using Placement = std::vector<std::vector<std::vector<uint32_t>>>;  // Chunks by server and partition.

  Placement Place();
  // Each worker groups chunks in its own way, though the rules would let them agree.
  std::vector<ChunkGroup> Group();
  void StartWorker(uint32_t index);
  SimWorker* Living(uint32_t index);
  void Happen(const Incident& incident);
  bool Finished() const;
  std::string WhoWaits();

  World world_;
  Placement placement_;
  CoordinatorHost coordinator_;
  std::vector<std::unique_ptr<SimServer>> servers_;
  std::vector<std::unique_ptr<SimWorker>> workers_;  // All that ever started.
  std::unique_ptr<SimEvaluator> evaluator_;
  size_t incidents_left_;
};

Simulation::Simulation(const RunOptions& options)
    : world_(DrawScenario(options.seed), options.keep_trace),
      placement_(Place()),
      coordinator_(&world_),
      incidents_left_(world_.scenario.incidents.size()) {
  std::vector<SimServer*> servers;
  for (uint32_t index = 0; index < world_.scenario.servers; ++index) {
    servers_.push_back(std::make_unique<SimServer>(&world_, &coordinator_, index, placement_[index]));
    servers.push_back(servers_.back().get());
  }
  for (uint32_t index = 0; index < world_.scenario.workers; ++index) StartWorker(index);
  evaluator_ = std::make_unique<SimEvaluator>(&world_, servers, Group());
  for (const Incident& incident : world_.scenario.incidents) {
    world_.queue.After(incident.at, [this, incident] {
      --incidents_left_;
      Happen(incident);
    });
  }
}

Simulation::Placement Simulation::Place() {
  Placement placement(world_.scenario.servers,
                      std::vector<std::vector<uint32_t>>(world_.scenario.partitions, std::vector<uint32_t>()));
  for (uint32_t chunk = 0; chunk < world_.scenario.chunks; ++chunk) {
    auto& partitions = placement[world_.random.Below(placement.size())];
    partitions[world_.random.Below(partitions.size())].push_back(chunk);
  }
  return placement;
}

std::vector<ChunkGroup> Simulation::Group() {
  std::vector<ChunkGroup> groups;
  for (uint32_t server = 0; server < placement_.size(); ++server) {
    for (uint32_t partition = 0; partition < placement_[server].size(); ++partition) {
      bool open = false;
      for (uint32_t chunk : placement_[server][partition]) {
        if (!open || world_.random.Below(2) == 0) groups.push_back({server, partition, {}});
        groups.back().chunks.push_back(chunk);
        open = true;
      }
    }
  }
  for (size_t i = groups.size(); i > 1; --i) std::swap(groups[i - 1], groups[world_.random.Below(i)]);
  return groups;
}

void Simulation::StartWorker(uint32_t index) {
  std::vector<SimServer*> servers;
  for (auto& server : servers_) servers.push_back(server.get());
  workers_.push_back(std::make_unique<SimWorker>(&world_, &coordinator_, std::move(servers), index, Group()));
}

SimWorker* Simulation::Living(uint32_t index) {
  for (auto worker = workers_.rbegin(); worker != workers_.rend(); ++worker) {
    if ((*worker)->task().index() == index && (*worker)->state() == SimWorker::State::kRuns) return worker->get();
  }
  return nullptr;
}

void Simulation::Happen(const Incident& incident) {
  SimWorker* worker = Living(incident.worker);
  switch (incident.kind) {
    case Incident::Kind::kSwitchMode:
      return coordinator_.RequestSwitch(incident.rules);
    case Incident::Kind::kCrashWorker:
      if (worker != nullptr) worker->Kill("crash");
      return;
    case Incident::Kind::kStartWorker:
      return StartWorker(incident.worker);
    case Incident::Kind::kFreezeWorker:
      if (worker != nullptr) worker->Freeze(incident.length);
      return;
    case Incident::Kind::kCrashCoordinator:
      return coordinator_.Crash(incident.step, incident.length);
    case Incident::Kind::kBreakStream:
      if (worker != nullptr) worker->BreakStream(incident.server);
      return;
  }
}

bool Simulation::Finished() const {
  if (incidents_left_ > 0) return false;
  for (const auto& worker : workers_) {
    if (worker->state() == SimWorker::State::kRuns) return false;
  }
  return true;
}

std::string Simulation::WhoWaits() {
  std::string text = absl::StrCat("\n", coordinator_.Describe(), "\n");
  for (auto& worker : workers_) absl::StrAppend(&text, worker->Describe(), "\n");
  for (auto& server : servers_) absl::StrAppend(&text, server->Describe());
  return text;
}

RunResult Simulation::Run() {
  const absl::Time limit = absl::UnixEpoch() + world_.scenario.heal_at + kTimeToFinish;
  while (!Finished() && world_.queue.RunNext()) {
    const absl::Time now = world_.queue.Now();
    if (now > limit) world_.oracle.Violate(absl::StrCat("I4: the job does not come to its end", WhoWaits()));
    world_.oracle.CheckTime(now);
    if (!world_.oracle.violation().empty()) break;
  }
  RunResult result;
  result.scenario = Describe(world_.scenario);
  result.events = world_.queue.events();
  result.steps = world_.oracle.highest_begun() + 1;
  result.plans = static_cast<int64_t>(world_.oracle.newest_plan().generation());
  result.violation = world_.oracle.violation();
  result.trace.assign(world_.trace.lines().begin(), world_.trace.lines().end());
  return result;
}

}  // namespace

RunResult Run(const RunOptions& options) { return Simulation(options).Run(); }

}  // namespace rubato::simulation
