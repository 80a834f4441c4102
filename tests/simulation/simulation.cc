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
  void StartWorker(uint32_t index);
  SimWorker* Living(uint32_t index);
  void Inject(const Fault& fault);
  bool Finished() const;
  std::string WhoWaits();

  World world_;
  CoordinatorHost coordinator_;
  std::vector<std::unique_ptr<SimServer>> servers_;
  std::vector<std::unique_ptr<SimWorker>> workers_;  // All that ever started.
  std::unique_ptr<SimEvaluator> evaluator_;
  size_t faults_left_;
};

Simulation::Simulation(const RunOptions& options)
    : world_(DrawScenario(options.seed), options.keep_trace),
      coordinator_(&world_),
      faults_left_(world_.scenario.faults.size()) {
  world_.on_record = options.on_record;
  std::vector<SimServer*> servers;
  for (uint32_t index = 0; index < world_.scenario.servers; ++index) {
    servers_.push_back(std::make_unique<SimServer>(&world_, &coordinator_, index));
    servers.push_back(servers_.back().get());
  }
  for (uint32_t index = 0; index < world_.scenario.workers; ++index) StartWorker(index);
  evaluator_ = std::make_unique<SimEvaluator>(&world_, servers);
  for (const Fault& fault : world_.scenario.faults) {
    world_.queue.After(fault.at, [this, fault] {
      --faults_left_;
      Inject(fault);
    });
  }
}

void Simulation::StartWorker(uint32_t index) {
  std::vector<SimServer*> servers;
  for (auto& server : servers_) servers.push_back(server.get());
  workers_.push_back(std::make_unique<SimWorker>(&world_, &coordinator_, std::move(servers), index));
}

SimWorker* Simulation::Living(uint32_t index) {
  for (auto worker = workers_.rbegin(); worker != workers_.rend(); ++worker) {
    if ((*worker)->task().index() == index && (*worker)->state() == SimWorker::State::kRuns) return worker->get();
  }
  return nullptr;
}

void Simulation::Inject(const Fault& fault) {
  SimWorker* worker = Living(fault.worker);
  switch (fault.kind) {
    case Fault::Kind::kSwitchMode:
      return coordinator_.RequestSwitch(fault.rules);
    case Fault::Kind::kCrashWorker:
      // A job that has not started waits for its workers; whoever launches them would start this one again.
      if (worker != nullptr && world_.oracle.newest_plan().generation() != 0) worker->Kill("crash");
      return;
    case Fault::Kind::kStartWorker:
      return StartWorker(fault.worker);
    case Fault::Kind::kFreezeWorker:
      if (worker != nullptr) worker->Freeze(fault.length);
      return;
    case Fault::Kind::kCrashCoordinator:
      return coordinator_.Crash(fault.step, fault.length);
    case Fault::Kind::kBreakStream:
      if (worker != nullptr) worker->BreakStream(fault.server);
      return;
  }
}

bool Simulation::Finished() const {
  if (coordinator_.finished()) return true;
  if (faults_left_ > 0) return false;
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

RunResult RunOnce(const RunOptions& options) { return Simulation(options).Run(); }

}  // namespace rubato::simulation
