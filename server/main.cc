// A parameter server. SIGTERM or SIGINT ends it, and with it the job, which says so to everybody. Exit codes: 0 the job
// is over, 1 it was given up, 2 bad flags or config.
#include <CLI/CLI.hpp>
#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/config/awaited_model.h"
#include "common/config/load.h"
#include "common/health/standard_services.h"
#include "common/random.h"
#include "common/security/open_security.h"
#include "common/stop_watcher.h"
#include "common/task_log.h"
#include "common/transport/process_tuning.h"
#include "server/incarnations.h"
#include "server/job_config_request.h"
#include "server/server_task.h"

namespace {

// The incarnation before has just given the port back.
constexpr absl::Duration kListenTimeout = absl::Seconds(10);

}  // namespace

int main(int argc, char** argv) {
  rubato::UseHugePages();
  rubato::TuneProcess();
  rubato::ScheduleAsBatch();
  CLI::App app("Rubato parameter server: holds a part of the weights and applies gradients to it.");
  std::string config_path;
  std::vector<std::string> overrides;
  rubato::server::ServerTask::Options options;
  options.task.set_role(rubato::v1::TaskId::SERVER);
  options.listen = "127.0.0.1:0";
  uint32_t index = 0;
  app.add_option("--config", config_path, "the job's textproto")->required();
  app.add_option("--set", overrides, "override a field of the config: path=value")->expected(1)->take_all();
  app.add_option("--task_index", index, "which server this is, from 0")->required();
  app.add_option("--coordinator", options.coordinator, "host:port of the coordinator")->required();
  app.add_option("--listen", options.listen, "host:port to listen on; port 0 picks a free one")->capture_default_str();
  app.add_option("--advertise_host", options.advertise_host,
                 "what workers call this host; default: the address that the coordinator sees");
  app.add_option(
      "--metrics_listen", options.metrics_listen,
      "host:port to answer HTTP requests for /metrics and /healthz on; port 0 picks a free one; default: none");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  absl::StatusOr<rubato::v1::JobConfig> config =
      rubato::LoadJobConfig(config_path, overrides, {.may_await_model = true});
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return 2;
  }
  if (index >= config->cluster().servers()) {
    std::cerr << "--task_index: " << index << "; cluster.servers is " << config->cluster().servers() << "\n";
    return 2;
  }
  options.task.set_index(index);
  rubato::RealClock clock;
  rubato::Health health;
  options.health = &health;
  options.clock = &clock;
  std::unique_ptr<rubato::Logger> log;  // Of the present incarnation, whose lines it names.
  rubato::server::Incarnations incarnations([&] {
    options.task.set_incarnation(rubato::SystemRandom64());
    if (log != nullptr) options.listen_timeout = kListenTimeout;
    log.reset(new rubato::Logger(rubato::MakeTaskLogger(options.task, *config, &clock)));
    options.log = log.get();
    return std::make_unique<rubato::server::ServerTask>(options);
  });
  std::atomic<bool> stopped = false;
  rubato::StopWatcher watcher([&](absl::string_view signal) {
    stopped = true;
    incarnations.Cancel(absl::AbortedError(absl::StrCat("stopped by ", signal)));
  });
  rubato::Logger waiting = rubato::MakeTaskLogger(options.task, *config, &clock);
  absl::StatusOr<std::shared_ptr<const rubato::TaskSecurity>> security = rubato::OpenTaskSecurity(
      *config, options.task, {{"--listen", options.listen}, {"--coordinator", options.coordinator}}, clock, &waiting);
  if (!security.ok()) {
    std::cerr << security.status().message() << "\n";
    return 2;
  }
  options.security = *security;
  if (config->security().reflection()) rubato::EnableReflection();
  if (rubato::AwaitsModel(*config)) {
    config = rubato::server::RequestJobConfig(
        *config, options.coordinator, options.security.get(), [&] { return stopped.load(); }, &clock, &waiting);
    if (!config.ok()) {
      waiting.Error(config.status().message());
      return 1;
    }
  }
  options.config = *config;
  absl::Status status = incarnations.Run();
  if (status.ok()) return 0;
  log->Error(status.message());
  return 1;
}
