#include "server/server_task.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/checkpoint_directory.h"
#include "common/limits/port_limits.h"
#include "common/model_spec.h"
#include "common/security/metrics_token.h"
#include "common/session/task_session.h"
#include "common/shared_memory/blocks.h"
#include "common/status.h"
#include "common/task.h"
#include "common/trace/trace_files.h"
#include "kernels/optimizer/compensation.h"
#include "server/server_metrics.h"

namespace rubato::server {
namespace {

constexpr absl::Duration kLeaveTimeout = absl::Seconds(1);
constexpr absl::Duration kListenPause = absl::Milliseconds(50);
// Directives that may wait while a job is started. The coordinator repeats what was not acknowledged.
constexpr size_t kMaxDirectives = 1024;
// Of versions that workers read in shared memory while the model goes on without them.
constexpr int64_t kReadVersionsBytesMax = int64_t{1} << 30;

}  // namespace

ServerTask::ServerTask(Options options)
    : options_(std::move(options)),
      refusals_(options_.clock, options_.log),
      parts_({.directory = CheckpointDirectory(options_.config), .task = options_.task, .clock = options_.clock}),
      part_service_(&parts_, &refusals_),
      recorder_({.task = TaskName(options_.task),
                 .task_index = options_.task.index(),
                 .clock_offset = [this] { return ClockOffsetOfSession(); },
                 .clock = options_.clock}),
      timed_trace_({.recorder = &recorder_,
                    .clock = options_.clock,
                    .log = options_.log,
                    .directory = TraceDirectory(options_.config),
                    .file = TraceFile(options_.task)}),
      trace_window_({.recorder = &recorder_,
                     .steps = options_.config.training().trace_steps(),
                     .after = options_.config.training().trace_after_steps(),
                     .directory = TraceDirectory(options_.config),
                     .file = TraceFile(options_.task),
                     .log = options_.log}) {}

void ServerTask::OfferSharedMemory() {
  if (options_.config.cluster().shared_memory() == v1::ClusterConfig::OFF) return;
  absl::StatusOr<ModelSpec> model = BuildModelSpec(options_.config.model());
  if (!model.ok()) return;  // ServerCore says why.
  int64_t model_bytes = 0;
  for (const TensorSpec& tensor : model->tensors) model_bytes += NumElements(tensor.shape) * int64_t{sizeof(float)};
  // Room for four versions of the whole model, and for those that workers read while it goes on without them, in SSP
  // and ASYNC; for all of these if compensation keeps them, too. This server's part of the model is smaller, and pages
  // cost nothing until they are used. What does not fit goes over TCP.
  const int64_t workers = options_.config.cluster().workers();
  const auto formula = CompensationFormulaOf(options_.config.consistency().compensation());
  const bool keeps = formula.has_value() && ReadsPulledWeights(*formula);
  const int64_t fits = kReadVersionsBytesMax / std::max<int64_t>(model_bytes, 1);
  const int64_t versions = 4 + (keeps ? workers : std::min(workers, fits));
  int64_t bytes = (1 << 20) + versions * model_bytes;
  if (!model->tables.empty()) bytes += kRowRoomBytes;
  absl::StatusOr<std::shared_ptr<SharedArena>> arena = SharedArena::Create(TaskName(options_.task), bytes);
  absl::Status status = arena.status();
  if (arena.ok()) {
    SharedMemoryListener::Options listener;
    listener.offered = (*arena)->shared_region();
    listener.clock = options_.clock;
    listener.log = options_.log;
    absl::StatusOr<std::unique_ptr<SharedMemoryListener>> created = SharedMemoryListener::Create(std::move(listener));
    status = created.status();
    if (created.ok()) {
      arena_ = *std::move(arena);
      shared_ = *std::move(created);
    }
  }
  if (!status.ok()) {
    options_.log->Warning(
        absl::StrCat("offers no shared memory, so that tasks on this host use TCP: ", status.message()));
  }
}

absl::Status ServerTask::Run() {
  OfferSharedMemory();
  ServerCore::Options core;
  core.shared = shared_.get();
  core.arena = arena_;
  core.config = options_.config;
  core.task = options_.task;
  core.security = options_.security;
  core.clock = options_.clock;
  core.log = options_.log;
  core.trace = &recorder_;
  core.refusals = &refusals_;
  if (options_.config.training().trace_steps() > 0) core.on_step = [this](int64_t step) { OnStep(step); };
  core.report = [this](v1::TaskMessage message) { Report(std::move(message)); };
  core.cancelled = [this] { return stopping(); };
  core.on_lost_part = [this](const absl::Status& status) {
    options_.log->Error(
        absl::StrCat("starts again, so that the job goes back to its last checkpoint: ", status.message()));
    End(absl::OkStatus(), /*restart=*/true);
  };
  core.on_failure = [this](const absl::Status& status) { End(status, /*restart=*/false); };
  RUBATO_ASSIGN_OR_RETURN(core_, ServerCore::Create(std::move(core)));

  directives_ = std::make_unique<WorkQueue>(options_.clock, [](absl::Time) {});
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<ExchangeServer> server, Listen());
  options_.log->Info(absl::StrCat("listens on port ", server->port()));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<TaskPage> page, OpenPage());

  Session::Options describing = DescribeSession(server->port(), page == nullptr ? "" : page->address());
  describing.poller = server->poller();
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(std::move(describing)));
  SetSession(session.get());
  session->Start();

  absl::Status status = AwaitEnd();
  options_.health->SetServing(false);
  server->Shutdown();
  timed_trace_.Finish();
  {
    MutexLock lock(trace_mu_);
    trace_window_.Finish();
  }
  // One that starts again does not leave: it breaks the stream, and registers as another incarnation.
  if (!restarts()) {
    v1::Leaving leaving;
    leaving.set_error(std::string(status.message()));
    if (absl::IsResourceExhausted(status)) leaving.set_cause(v1::Leaving::TABLE_FULL);
    if (CannotRestore(status)) leaving.set_cause(v1::Leaving::CANNOT_RESTORE);
    absl::Status left = session->Leave(leaving, kLeaveTimeout);
    if (!left.ok()) {
      options_.log->Warning(absl::StrCat("leaves without the coordinator's knowledge: ", left.message()));
    }
  }
  // Its thread may go on speaking to the core, if the coordinator did not hear of the leave; and the core to it.
  SetSession(nullptr);
  session.reset();
  directives_->Stop();
  page.reset();
  server.reset();  // Its handler uses the core.
  core_.reset();
  return status;
}

absl::StatusOr<std::unique_ptr<ExchangeServer>> ServerTask::Listen() {
  RUBATO_ASSIGN_OR_RETURN(const ModelSpec model, BuildModelSpec(options_.config.model()));
  const absl::Time deadline = options_.clock->Now() + options_.listen_timeout;
  for (;;) {
    ExchangeServer::Options listen;
    listen.limits = ServerLimits(options_.config, model);
    listen.refusals = &refusals_;
    listen.listen = options_.listen;
    listen.security = options_.security;
    listen.health = options_.health;
    if (options_.config.checkpoint().copies() > 1) listen.services.push_back(&part_service_);
    absl::StatusOr<std::unique_ptr<ExchangeServer>> server = ExchangeServer::Create(std::move(listen), this);
    if (!absl::IsUnavailable(server.status()) || options_.clock->Now() >= deadline) return server;
    MutexLock lock(mu_);
    if (stop_) return ended_.ok() ? server.status() : ended_;
    changed_.WaitFor(mu_, kListenPause);
  }
}

absl::Status ServerTask::AwaitEnd() {
  // The coordinator, whose lease and deadlines bound this wait, says when the job is over.
  MutexLock lock(mu_);
  while (!stop_) changed_.WaitFor(mu_, absl::Seconds(1));
  return ended_;
}

bool ServerTask::stopping() {
  MutexLock lock(mu_);
  return stop_;
}

bool ServerTask::restarts() {
  MutexLock lock(mu_);
  return restart_;
}

absl::StatusOr<std::unique_ptr<TaskPage>> ServerTask::OpenPage() {
  TaskPage::Options options;
  options.listen = options_.metrics_listen;
  RUBATO_ASSIGN_OR_RETURN(options.token, TokenForMetrics(options_.config, options.listen));
  options.task = options_.task;
  options.metrics = [this](MetricText* text) { AddServerMetrics(core_->Progress(), core_->plan(), text); };
  options.health = options_.health;
  options.clock = options_.clock;
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<TaskPage> page, TaskPage::Create(std::move(options)));
  if (page != nullptr) options_.log->Info(absl::StrCat("shows its metrics on port ", page->port()));
  return page;
}

Session::Options ServerTask::DescribeSession(int port, const std::string& metrics) {
  Session::Options session = TaskSessionOptions(options_.config, options_.coordinator, options_.security, options_.task,
                                                options_.clock, options_.log);
  session.registration.set_address(absl::StrCat(options_.advertise_host, ":", port));
  session.registration.set_metrics_address(metrics);
  if (shared_ != nullptr) *session.registration.mutable_shared_memory() = shared_->address();
  session.heartbeat = [this] {
    v1::Heartbeat heartbeat;
    *heartbeat.mutable_server() = core_->Progress();
    *heartbeat.mutable_trace() = timed_trace_.last();
    *heartbeat.mutable_cut() = core_->cut_progress();
    return heartbeat;
  };
  session.on_directive = [this](const v1::Directive& directive) { OnDirective(directive); };
  session.on_lost = [this](absl::Status status) { End(std::move(status), false); };
  return session;
}

void ServerTask::Report(v1::TaskMessage message) {
  MutexLock lock(mu_);
  if (session_ != nullptr) session_->Send(std::move(message));
}

void ServerTask::SetSession(Session* session) {
  MutexLock lock(mu_);
  session_ = session;
}

std::optional<ClockOffset::Estimate> ServerTask::ClockOffsetOfSession() {
  MutexLock lock(mu_);
  return session_ == nullptr ? std::nullopt : session_->clock_offset();
}

void ServerTask::OnStep(int64_t step) {
  MutexLock lock(trace_mu_);
  trace_window_.BeginStep(step);
}

void ServerTask::OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&& message) {
  core_->OnMessage(std::move(connection), message);
}

void ServerTask::OnClosed(uint64_t connection) { core_->OnClosed(connection); }

void ServerTask::OnDirective(const v1::Directive& directive) {
  if (directive.has_registered()) {
    MutexLock lock(mu_);
    if (!stop_) options_.health->SetServing(true);
  } else if (directive.has_stop()) {
    Cancel(HeedStop(directive.stop(), options_.config, options_.log));
  } else if (directive.has_restart()) {
    options_.log->Info(absl::StrCat("starts again: ", directive.restart().reason()));
    End(absl::OkStatus(), /*restart=*/true);
  } else if (directive.has_record_trace()) {
    timed_trace_.Record(directive.record_trace());
  } else if (directives_->length() < kMaxDirectives) {
    directives_->Post([this, directive] { OnJobDirective(directive); });
  }
}

void ServerTask::OnJobDirective(const v1::Directive& directive) {
  if (!directive.has_job()) return core_->OnDirective(directive);
  // Before this server is: others may need its parts to be.
  parts_.SetJob(directive.job().fingerprint());
  if (absl::Status status = core_->StartJob(directive.job()); !status.ok()) return End(std::move(status), false);
  if (directive.job().has_plan()) {
    v1::Directive commit;
    *commit.mutable_commit()->mutable_plan() = directive.job().plan();
    core_->OnDirective(commit);
  }
}

void ServerTask::Cancel(absl::Status why) {
  {
    MutexLock lock(mu_);
    restart_ = false;
  }
  End(std::move(why), false);
}

void ServerTask::End(absl::Status why, bool restart) {
  MutexLock lock(mu_);
  if (stop_) return;
  stop_ = true;
  restart_ = restart;
  ended_ = std::move(why);
  changed_.NotifyAll();
}

}  // namespace rubato::server
