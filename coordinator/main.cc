// The coordinator of a job. If the config says nothing of a model, it first waits for a client that does. SIGTERM or
// SIGINT stops the job: everybody is told, and has two seconds to leave. Exit codes: 0 the job is done, 1 it failed or
// was stopped, 2 bad flags or config.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/config/client_job.h"
#include "common/config/load.h"
#include "common/health/health_service.h"
#include "common/health/standard_services.h"
#include "common/http/listen_address.h"
#include "common/limits/refusal_log.h"
#include "common/metrics/task_page.h"
#include "common/mutex.h"
#include "common/random.h"
#include "common/security/metrics_token.h"
#include "common/security/open_security.h"
#include "common/security/operator_token.h"
#include "common/status.h"
#include "common/stop_watcher.h"
#include "common/storage/file.h"
#include "common/task_log.h"
#include "common/transport/process_tuning.h"
#include "coordinator/coordinator_service.h"
#include "coordinator/job_runner.h"
#include "coordinator/model_offers.h"
#include "coordinator/page/job_page.h"
#include "coordinator/record/job_metrics.h"
#include "coordinator/record/run_files.h"

namespace rubato::coordinator {
namespace {

// A signal, or an operator, has asked for the job's end: for the main thread to act on.
class StopRequest {
 public:
  void Set(std::string why) {
    MutexLock lock(mu_);
    why_ = std::move(why);
  }
  // Once.
  std::optional<std::string> Take() {
    MutexLock lock(mu_);
    return std::exchange(why_, std::nullopt);
  }

 private:
  Mutex mu_;
  std::optional<std::string> why_ ABSL_GUARDED_BY(mu_);
};

struct Flags {
  std::string config;
  std::vector<std::string> overrides;
  std::string listen = "127.0.0.1:7070";
  std::string port_file;
  std::string metrics_listen;
  std::string page;
  bool resume = false;
  bool resume_ended = false;
};

// Whoever waits for the file finds it whole.
absl::Status WritePortFile(const std::string& path, const std::string& address) {
  const std::string temporary = absl::StrCat(path, ".new");
  std::ofstream file(temporary, std::ios::trunc);
  file << address;
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("--port_file ", path, ": cannot be written"));
  }
  return absl::OkStatus();
}

// How long a page may wait for the runner's thread.
constexpr absl::Duration kPageTimeout = absl::Seconds(2);

// The pages of the coordinator: those of every task, and /targets, the tasks that show metrics.
absl::StatusOr<std::unique_ptr<TaskPage>> OpenPage(const Flags& flags, const v1::JobConfig& config,
                                                   const v1::TaskId& task, JobRunner* runner, const Health* health,
                                                   const Clock* clock) {
  TaskPage::Options options;
  options.listen = flags.metrics_listen;
  RUBATO_ASSIGN_OR_RETURN(options.token, TokenForMetrics(config, options.listen));
  options.task = task;
  options.metrics = [runner, config](MetricText* text) {
    if (auto status = runner->AwaitStatus(kPageTimeout)) AddJobMetrics(*status, config, text);
  };
  options.other = [runner, listen = flags.metrics_listen](const HttpRequest& request) {
    if (request.path != "/targets") {
      return HttpReply{.status = 404, .body = "/metrics, /healthz and /targets are here\n"};
    }
    auto status = runner->AwaitStatus(kPageTimeout);
    if (!status.has_value()) return HttpReply{.status = 503, .body = "the coordinator is busy\n"};
    return HttpReply{.content_type = "application/json",
                     .body = MetricTargets(*status, ReachableAddress(listen, request.port))};
  };
  options.health = health;
  options.clock = clock;
  return TaskPage::Create(std::move(options));
}

absl::StatusOr<std::unique_ptr<JobRunner>> MakeRunner(const Flags& flags, const v1::JobConfig& config,
                                                      const Clock* clock, Logger* log, JobPage* page) {
  JobRunner::Options options;
  options.config = config;
  options.config_fingerprint = ConfigFingerprint(config);
  options.job_fingerprint = SystemRandom64();
  options.resume = flags.resume || flags.resume_ended;
  options.resume_ended = flags.resume_ended;
  options.clock = clock;
  options.log = log;
  if (page != nullptr) options.on_line = [page](const v1::RunRecordLine& line) { page->OnLine(line); };
  return JobRunner::Create(std::move(options));
}

// Null: no page is asked for.
absl::StatusOr<std::unique_ptr<JobPage>> MakeJobPage(const Flags& flags, const v1::JobConfig& config,
                                                     const Clock* clock) {
  const std::string& listen = flags.page.empty() ? config.observability().page_address() : flags.page;
  if (listen.empty()) return nullptr;
  return JobPage::Create({.config = config, .listen = listen, .clock = clock});
}

// A job that is resumed has the model that a client offered before.
absl::StatusOr<v1::JobConfig> WithStoredModel(const Flags& flags, const v1::JobConfig& config) {
  const std::string stored = JoinPath(config.run_directory(), "job.textproto");
  if (!AwaitsModel(config) || !(flags.resume || flags.resume_ended) || !FileExists(stored)) return config;
  RUBATO_ASSIGN_OR_RETURN(const v1::JobConfig complete, LoadJobConfig(stored, {}, {.may_await_model = true}));
  return AwaitsModel(complete) ? config : WithModelOf(config, complete);
}

CoordinatorService::Before BeforeTheJob(const v1::JobConfig& config, StopRequest* stop) {
  CoordinatorService::Before before;
  before.status.set_job_name(config.name());
  before.status.set_run_directory(config.run_directory());
  before.status.set_phase(v1::JobStatus::STARTING);
  before.status.set_waiting_for("a client to offer the job's model");
  before.stop = [stop](const std::string& reason) { stop->Set(reason); };
  return before;
}

// The config with the model of the client that comes first. DeadlineExceeded: none came in time. Aborted: stopped.
absl::StatusOr<v1::JobConfig> AwaitModel(const v1::JobConfig& config, ModelOffers* offers, StopRequest* stop,
                                         const Clock* clock, Logger* log) {
  const double timeout = config.cluster().start_timeout_seconds();
  const absl::Time deadline = clock->Now() + absl::Seconds(timeout);
  log->Info("waits for a client to offer the job's model");
  for (;;) {
    if (std::optional<v1::JobConfig> complete = offers->Await(absl::Milliseconds(100))) return *complete;
    if (std::optional<std::string> why = stop->Take()) return absl::AbortedError(*why);
    if (clock->Now() < deadline) continue;
    return absl::DeadlineExceededError(
        absl::StrCat("no client has offered the job's model within cluster.start_timeout_seconds, ", timeout));
  }
}

// Fails when the job could not be begun; otherwise `result` says how it ended.
absl::Status RunJob(const Flags& flags, const v1::JobConfig& given, const v1::TaskId& task, StopRequest* stop,
                    const Clock* clock, Logger* log, absl::Status* result) {
  RUBATO_ASSIGN_OR_RETURN(const std::shared_ptr<const TaskSecurity> security,
                          OpenTaskSecurity(given, task, {{"--listen", flags.listen}}, *clock, log));
  if (given.security().reflection()) EnableReflection();
  RUBATO_ASSIGN_OR_RETURN(v1::JobConfig config, WithStoredModel(flags, given));
  const bool awaits_model = AwaitsModel(config);
  // Before anybody waits for it.
  if (awaits_model && !flags.resume && !flags.resume_ended) RUBATO_RETURN_IF_ERROR(RunFiles::CheckNew(config));
  ModelOffers offers(config, clock);
  RefusalLog refusals(clock, log);
  CoordinatorService service(&offers, BeforeTheJob(config, stop));
  service.SetRefusals(&refusals);
  // Takes the runner's lines, and asks it for things until it is closed.
  std::unique_ptr<JobPage> job_page;
  std::unique_ptr<JobRunner> runner;
  absl::Cleanup close_page = [&job_page] {
    if (job_page != nullptr) job_page->Close();
  };
  const auto begin = [&]() -> absl::Status {
    RUBATO_ASSIGN_OR_RETURN(job_page, MakeJobPage(flags, config, clock));
    RUBATO_ASSIGN_OR_RETURN(runner, MakeRunner(flags, config, clock, log, job_page.get()));
    return absl::OkStatus();
  };
  if (!awaits_model) {
    RUBATO_RETURN_IF_ERROR(begin());
    service.SetRunner(runner.get());
  }
  Health health;
  HealthService health_service(&health, "rubato.v1.Coordinator");
  RUBATO_ASSIGN_OR_RETURN(Listener listener, Listen(flags.listen, security.get(), &service, &health_service));
  RUBATO_RETURN_IF_ERROR(PrepareJobToken(given));
  const std::string address = ReachableAddress(flags.listen, listener.port);
  log->Info(absl::StrCat("job ", config.name(), ", run directory ", config.run_directory(), ", reached at ", address));
  if (awaits_model) {
    if (!flags.port_file.empty()) RUBATO_RETURN_IF_ERROR(WritePortFile(flags.port_file, address));
    absl::StatusOr<v1::JobConfig> complete = AwaitModel(config, &offers, stop, clock, log);
    absl::Status begun = complete.status();
    if (complete.ok()) {
      config = *std::move(complete);
      begun = begin();
    }
    if (!begun.ok()) {
      log->Error(begun.message());
      offers.End(begun);
      health_service.Drain();
      listener.server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
      *result = begun;
      return complete.ok() ? begun : absl::OkStatus();
    }
    service.SetRunner(runner.get());
  }
  offers.Begin([&runner](const std::string& why) { runner->Disagree(why); });
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<TaskPage> page, OpenPage(flags, config, task, runner.get(), &health, clock));
  if (page != nullptr) {
    const std::string pages = ReachableAddress(flags.metrics_listen, page->port());
    const bool asks = !config.security().insecure() && !IsLoopback(flags.metrics_listen);
    log->Info(absl::StrCat(
        "shows metrics at http://", pages, "/metrics and where all tasks do at http://", pages, "/targets",
        asks ? absl::StrCat(", for who has the token in ", MetricsTokenPath(CredentialsFolder(config))) : ""));
  }
  if (job_page != nullptr) {
    RUBATO_RETURN_IF_ERROR(job_page->Open(runner.get()));
    log->Info(absl::StrCat("shows the job at ", job_page->url(), "; the operator's token is in ",
                           OperatorTokenPath(config.run_directory())));
  }
  health.SetServing(true);
  if (!awaits_model && !flags.port_file.empty()) RUBATO_RETURN_IF_ERROR(WritePortFile(flags.port_file, address));
  std::optional<absl::Status> ended;
  while (!ended) {
    if (std::optional<std::string> why = stop->Take()) runner->StopBecauseOf(*why);
    ended = runner->Wait(absl::Milliseconds(100));
  }
  health.SetServing(false);
  offers.End(absl::UnavailableError(ended->ok() ? "the job has ended"
                                                : absl::StrCat("the job has ended: ", ended->message())));
  health_service.Drain();
  listener.server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
  *result = *ended;
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  TuneProcess();
  ScheduleToAnswer();
  Flags flags;
  CLI::App app("Rubato coordinator: says who takes part in a job and under which consistency rule.");
  app.add_option("--config", flags.config, "the job's textproto")->required();
  app.add_option("--set", flags.overrides, "override a field of the config: path=value")->expected(1)->take_all();
  app.add_option("--listen", flags.listen, "host:port to listen on; port 0 picks a free one")->capture_default_str();
  app.add_option("--port_file", flags.port_file, "write the host:port that is listened on to this file");
  app.add_flag("--resume", flags.resume, "go on with the run that the run directory holds");
  app.add_flag("--resume_ended", flags.resume_ended, "the same for a run that has failed or was stopped");
  app.add_option("--metrics_listen", flags.metrics_listen,
                 "host:port to answer HTTP requests for /metrics, /healthz and /targets on; port 0 picks a free one; "
                 "default: none");
  app.add_option("--page", flags.page,
                 "host:port to serve a page of the running job on; port 0 picks a free one; default: "
                 "observability.page_address of the config");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  absl::StatusOr<v1::JobConfig> config = LoadJobConfig(flags.config, flags.overrides, {.may_await_model = true});
  if (!config.ok()) {
    std::cerr << config.status().message() << "\n";
    return 2;
  }
  StopRequest stop;
  StopWatcher watcher([&](absl::string_view signal) { stop.Set(absl::StrCat("stopped by ", signal)); });
  RealClock clock;
  v1::TaskId task;
  task.set_role(v1::TaskId::COORDINATOR);
  task.set_incarnation(SystemRandom64());
  Logger log = MakeTaskLogger(task, *config, &clock);
  absl::Status result;
  absl::Status begun = RunJob(flags, *config, task, &stop, &clock, &log, &result);
  if (!begun.ok()) {
    std::cerr << begun.message() << "\n";
    return 2;
  }
  return result.ok() ? 0 : 1;
}

}  // namespace
}  // namespace rubato::coordinator

int main(int argc, char** argv) { return rubato::coordinator::Main(argc, argv); }
