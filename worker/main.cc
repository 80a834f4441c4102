// A worker, or with --role=evaluator an evaluator. SIGTERM or SIGINT lets it finish its step and leave; a second one
// ends it now. Exit codes: 0 the job or this task's part in it is over, or it has left as it was asked to, 1 it was
// given up, 2 bad flags or config, a device or memory that the machine has not, or an evaluator's bad test data.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/config/load.h"
#include "common/health/standard_services.h"
#include "common/network_link/link_model.h"
#include "common/random.h"
#include "common/security/open_security.h"
#include "common/status.h"
#include "common/stop_watcher.h"
#include "common/straggler/straggler_trace.h"
#include "common/task_log.h"
#include "common/transport/process_tuning.h"
#include "kernels/backend_cuda.h"
#include "worker/compute_task.h"
#include "worker/evaluator_task.h"
#include "worker/task_loop.h"
#include "worker/worker_task.h"

namespace {

// The exit status.
int RunTask(const std::string& health_listen, rubato::worker::ComputeTask::Options options) {
  using rubato::worker::ComputeTask;
  // Of the incarnation at work, and the one that comes next has another.
  std::unique_ptr<rubato::Logger> log;
  const auto draw_incarnation = [&] {
    options.task.set_incarnation(rubato::SystemRandom64());
    log.reset(new rubato::Logger(rubato::MakeTaskLogger(options.task, options.config, options.clock)));
    options.log = log.get();
  };
  bool restarts = false;
  rubato::worker::TaskLoop loop([&](ComputeTask::Legacy legacy) -> std::unique_ptr<ComputeTask> {
    if (std::exchange(restarts, true)) draw_incarnation();
    options.legacy = std::move(legacy);
    if (options.task.role() == rubato::v1::TaskId::EVALUATOR) {
      return std::make_unique<rubato::worker::EvaluatorTask>(options);
    }
    return std::make_unique<rubato::worker::WorkerTask>(options);
  });
  bool asked = false;  // The watcher's thread alone uses it.
  rubato::StopWatcher watcher([&](absl::string_view signal) {
    if (std::exchange(asked, true)) {
      loop.Cancel(absl::AbortedError(absl::StrCat("stopped by ", signal)));
    } else {
      loop.Drain();
    }
  });
  draw_incarnation();
  absl::StatusOr<std::shared_ptr<const rubato::TaskSecurity>> security = rubato::OpenTaskSecurity(
      options.config, options.task, {{"--coordinator", options.coordinator}}, *options.clock, log.get());
  if (!security.ok()) {
    std::cerr << security.status().message() << "\n";
    return 2;
  }
  options.security = *security;
  if (options.config.security().reflection()) rubato::EnableReflection();
  const auto listener = rubato::HealthListener::Create(health_listen, options.health);
  if (!listener.ok()) {
    log->Error(listener.status().message());
    return absl::IsInvalidArgument(listener.status()) ? 2 : 1;
  }
  if (*listener != nullptr) log->Info(absl::StrCat("says whether it is healthy on port ", (*listener)->port()));
  const absl::Status status = loop.Run();
  if (status.ok()) return 0;
  log->Error(status.message());
  return loop.refused() ? 2 : 1;
}

// Those that can be used, from GPU 0 on.
int CountGpus() {
  int gpus = 0;
  while (rubato::CheckCudaDevice(gpus).ok()) ++gpus;
  return gpus;
}

}  // namespace

int main(int argc, char** argv) {
  rubato::UseHugePages();
  rubato::TuneProcess();
  rubato::ScheduleAsBatch();
  CLI::App app("Rubato worker: computes gradients of its part of the data.");
  std::string config_path, coordinator, slow, network, metrics_listen, health_listen, role = "worker";
  std::vector<std::string> overrides;
  uint32_t index = 0;
  app.add_option("--config", config_path, "the job's textproto")->required();
  app.add_option("--set", overrides, "override a field of the config: path=value")->expected(1)->take_all();
  app.add_option("--task_index", index, "which worker this is, from 0")->required();
  app.add_option("--coordinator", coordinator, "host:port of the coordinator")->required();
  app.add_option("--role", role, "worker or evaluator")
      ->capture_default_str()
      ->check(CLI::IsMember({"worker", "evaluator"}));
  app.add_option("--slow", slow,
                 "how the worker is slowed down, as in x3 or sleep=30ms+bimodal=x6,0.125; default: not");
  app.add_option("--network", network,
                 "the network link that the worker is put behind, as in latency=10ms,rate=100mbit; default: none");
  app.add_option(
      "--metrics_listen", metrics_listen,
      "host:port to answer HTTP requests for /metrics and /healthz on; port 0 picks a free one; default: none");
  app.add_option("--health_listen", health_listen,
                 "host:port of gRPC's health service and reflection; port 0 picks a free one; default: none");
  app.add_flag_callback(
      "--count_gpus",
      [] {
        std::cout << CountGpus() << std::endl;
        throw CLI::Success();
      },
      "say how many GPUs training.device_index can name on this machine, and end");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  absl::StatusOr<rubato::v1::JobConfig> config = rubato::LoadJobConfig(config_path, overrides);
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return 2;
  }
  const absl::StatusOr<rubato::StragglerModel> model = rubato::LoadStragglerOf("--slow", slow);
  if (!model.ok()) {
    std::cerr << model.status().message() << "\n";
    return 2;
  }
  const absl::StatusOr<rubato::LinkModel> link = rubato::ParseLinkOf("--network", network);
  if (!link.ok()) {
    std::cerr << link.status().message() << "\n";
    return 2;
  }
  rubato::v1::TaskId id;
  id.set_role(role == "evaluator" ? rubato::v1::TaskId::EVALUATOR : rubato::v1::TaskId::WORKER);
  id.set_index(index);
  rubato::RealClock clock;
  rubato::Health health;
  rubato::worker::ComputeTask::Options options = {
      .config = *std::move(config),
      .task = id,
      .coordinator = coordinator,
      .slow = *model,
      .network = *link,
      .metrics_listen = metrics_listen,
      .health = &health,
      .clock = &clock,
      .abandon = [] { std::_Exit(1); },
      .factory = {.cuda = rubato::CreateCudaBackend, .count_gpus = rubato::CountCudaDevices}};
  return RunTask(health_listen, std::move(options));
}
