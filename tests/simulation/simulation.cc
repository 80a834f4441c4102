#include "tests/simulation/simulation.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/random.h"
#include "tests/simulation/coordinator_host.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/server_directory.h"
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
  void StartServer(uint32_t index);
  void StartWorker(uint32_t index);
  // What a launcher does, and a process that begins again.
  void StartAgain(const v1::TaskId& ended, absl::Duration delay);
  SimWorker* Living(uint32_t index);
  void Inject(const Fault& fault);
  void CrashWorker(SimWorker* worker);
  // When the server is started again.
  absl::Duration BackAfter(const Fault& crash) const;
  bool Finished() const;
  std::string WhoWaits();

  World world_;
  CoordinatorHost coordinator_;
  ServerDirectory directory_;
  std::vector<std::unique_ptr<SimServer>> servers_;  // All that ever started.
  std::vector<std::unique_ptr<SimWorker>> workers_;
  std::unique_ptr<SimEvaluator> evaluator_;
  size_t faults_left_;
  int workers_coming_ = 0;
};

Simulation::Simulation(const RunOptions& options)
    : world_(DrawScenario(options.seed), options.keep_trace),
      coordinator_(&world_),
      faults_left_(world_.scenario.faults.size()) {
  world_.on_record = options.on_record;
  world_.start_again = [this](const v1::TaskId& ended, absl::Duration delay) { StartAgain(ended, delay); };
  for (uint32_t index = 0; index < world_.scenario.servers; ++index) StartServer(index);
  for (uint32_t index = 0; index < world_.scenario.workers; ++index) StartWorker(index);
  evaluator_ = std::make_unique<SimEvaluator>(&world_, &directory_);
  for (const Fault& fault : world_.scenario.faults) {
    world_.queue.After(fault.at, [this, fault] {
      --faults_left_;
      Inject(fault);
    });
  }
}

void Simulation::StartServer(uint32_t index) {
  servers_.push_back(std::make_unique<SimServer>(&world_, &coordinator_, &directory_, index));
}

void Simulation::StartWorker(uint32_t index) {
  workers_.push_back(std::make_unique<SimWorker>(&world_, &coordinator_, &directory_, index));
}

void Simulation::StartAgain(const v1::TaskId& ended, absl::Duration delay) {
  const bool is_worker = ended.role() == v1::TaskId::WORKER;
  if (is_worker) ++workers_coming_;
  world_.queue.After(delay, [this, is_worker, index = ended.index()] {
    if (!is_worker) return StartServer(index);
    --workers_coming_;
    // One that was replaced has a successor.
    if (Living(index) == nullptr) StartWorker(index);
  });
}

SimWorker* Simulation::Living(uint32_t index) {
  for (auto worker = workers_.rbegin(); worker != workers_.rend(); ++worker) {
    if ((*worker)->task().index() == index && (*worker)->state() == SimWorker::State::kRuns) return worker->get();
  }
  return nullptr;
}

void Simulation::CrashWorker(SimWorker* worker) {
  // A job that has not started waits for its workers; whoever launches them would start this one again.
  if (worker == nullptr || world_.oracle.newest_plan().generation() == 0) return;
  if (world_.oracle.cuts().IsInOpen(worker->task())) world_.coverage.Note(Reached::kWorkerLostInCut);
  world_.rollback.NoteFault();
  worker->Kill("crash");
  if (!world_.assigning()) return;
  world_.coverage.Note(Reached::kWorkerLostBeforeWeights);
  StartAgain(worker->task(), world_.scenario.launcher);
}

absl::Duration Simulation::BackAfter(const Fault& crash) const {
  // A job that has not started waits for all of its servers.
  const bool started = world_.oracle.newest_plan().generation() != 0;
  return started ? crash.length : std::min(crash.length, world_.scenario.launcher);
}

void Simulation::Inject(const Fault& fault) {
  SimWorker* worker = Living(fault.worker);
  SimServer* server = directory_.Find(fault.server);
  switch (fault.kind) {
    case Fault::Kind::kSwitchMode:
      return coordinator_.RequestSwitch(fault.rules);
    case Fault::Kind::kRequestCheckpoint:
      return coordinator_.RequestCheckpoint();
    case Fault::Kind::kCrashWorker:
      return CrashWorker(worker);
    case Fault::Kind::kStartWorker:
      return StartWorker(fault.worker);
    case Fault::Kind::kFreezeWorker:
      if (worker != nullptr) worker->Freeze(fault.length);
      return;
    case Fault::Kind::kCrashCoordinator:
      world_.rollback.NoteFault();
      return coordinator_.Crash(fault);
    case Fault::Kind::kFreezeCoordinator:
      world_.rollback.NoteFault();
      return coordinator_.Freeze(fault);
    case Fault::Kind::kFillDisk:
      return coordinator_.FillDisk(fault.length);
    case Fault::Kind::kBreakStream:
      if (worker != nullptr) worker->BreakStream(fault.server);
      return;
    case Fault::Kind::kCrashServer:
      world_.rollback.NoteFault();
      if (coordinator_.IsFinishing() && server != nullptr) world_.coverage.Note(Reached::kServerCrashAtTheEnd);
      if (server != nullptr) server->Crash(BackAfter(fault));
      return;
    case Fault::Kind::kFreezeServer:
      world_.rollback.NoteFault();
      if (server != nullptr) server->Freeze(fault.length);
      return;
  }
}

bool Simulation::Finished() const {
  if (coordinator_.finished()) return true;
  if (faults_left_ > 0 || workers_coming_ > 0) return false;
  for (const auto& worker : workers_) {
    if (worker->state() == SimWorker::State::kRuns || worker->waits()) return false;
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
  result.steps = world_.oracle.highest_begun_ever() + 1;
  result.plans = static_cast<int64_t>(world_.oracle.newest_generation());
  result.coverage = world_.coverage;
  result.violation = world_.oracle.violation();
  result.trace.assign(world_.trace.lines().begin(), world_.trace.lines().end());
  return result;
}

}  // namespace

RunResult RunOnce(const RunOptions& options) { return Simulation(options).Run(); }

}  // namespace rubato::simulation
