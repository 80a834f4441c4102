#include "coordinator/coordinator_service.h"

#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato::coordinator {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(50);
// For an operator's switch whose call has no deadline of its own.
constexpr absl::Duration kSwitchTimeout = absl::Minutes(10);

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorService>> CoordinatorService::Create(Options options) {
  const std::string path = JoinPath(options.run_directory, "journal");
  JournalContents contents;
  if (FileExists(path)) {
    if (!options.resume) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " is the journal of an earlier start; use another run_directory, or go on with that job "
                             "with --resume"));
    }
    RUBATO_ASSIGN_OR_RETURN(contents, ReadJournal(path));
  } else if (options.resume) {
    return absl::FailedPreconditionError(absl::StrCat("--resume: there is no journal ", path));
  }
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<CoordinatorCore> core, CoordinatorCore::Create(options.core));
  RUBATO_ASSIGN_OR_RETURN(Actions recovered, core->Recover(contents.records, options.clock->Now()));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<JournalWriter> journal, JournalWriter::Open(path, contents.bytes));
  std::unique_ptr<CoordinatorService> service(
      new CoordinatorService(std::move(options), std::move(core), std::move(journal)));
  MutexLock lock(service->mu_);
  if (!service->metrics_) {
    return absl::UnavailableError(absl::StrCat(service->options_.run_directory, "/metrics.jsonl cannot be written"));
  }
  service->Perform(std::move(recovered));
  return service;
}

CoordinatorService::CoordinatorService(Options options, std::unique_ptr<CoordinatorCore> core,
                                       std::unique_ptr<JournalWriter> journal)
    : options_(std::move(options)),
      core_(std::move(core)),
      journal_(std::move(journal)),
      metrics_(JoinPath(options_.run_directory, "metrics.jsonl"), std::ios::app),
      ticker_([this] { Tick(); }) {}

CoordinatorService::~CoordinatorService() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  changed_.NotifyAll();
  ticker_.join();
}

absl::Status CoordinatorService::AwaitFinish() {
  MutexLock lock(mu_);
  while (!finished_) changed_.Wait(mu_);  // The core's own deadlines end every phase.
  // Whoever still has a stream or a call is let go.
  for (auto& [key, session] : sessions_) session->Close();
  for (auto& [ticket, open] : switches_) {
    open.reactor->Finish(grpc::Status(grpc::StatusCode::ABORTED, "the job is over"));
  }
  switches_.clear();
  return result_;
}

void CoordinatorService::RequestStop(const std::string& reason) {
  MutexLock lock(mu_);
  Perform(core_->RequestStop(reason, options_.clock->Now()));
}

grpc::ServerBidiReactor<v1::TaskMessage, v1::Directive>* CoordinatorService::Session(
    grpc::CallbackServerContext* context) {
  SessionReactor::Callbacks callbacks;
  callbacks.on_message = [this](const std::shared_ptr<SessionReactor>& session, const v1::TaskMessage& message) {
    OnMessage(session, message);
  };
  callbacks.on_closed = [this](const std::shared_ptr<SessionReactor>& session) { OnClosed(session); };
  return SessionReactor::Start(context->peer(), std::move(callbacks));
}

void CoordinatorService::OnMessage(const std::shared_ptr<SessionReactor>& session, const v1::TaskMessage& message) {
  MutexLock lock(mu_);
  if (finished_) return session->Close();
  const v1::TaskId& task = message.task();
  if (message.has_register_()) {
    std::shared_ptr<SessionReactor>& known = sessions_[{task.role(), task.index(), task.incarnation()}];
    if (known != nullptr && known != session) known->Close();
    known = session;
    session->set_task(task);
  } else if (!SameTask(session->task(), task)) {
    options_.log->Warning(absl::StrCat("a message of ", TaskName(task), " came on the stream of ",
                                       TaskName(session->task()), " from ", session->peer(), "; it is ignored"));
    return;
  }
  Perform(core_->OnMessage(message, session->peer(), options_.clock->Now()));
}

void CoordinatorService::OnClosed(const std::shared_ptr<SessionReactor>& session) {
  MutexLock lock(mu_);
  const v1::TaskId task = session->task();
  auto it = sessions_.find({task.role(), task.index(), task.incarnation()});
  if (it == sessions_.end() || it->second != session) return;
  sessions_.erase(it);
  Perform(core_->OnDisconnect(task, options_.clock->Now()));
}

void CoordinatorService::Perform(Actions actions) {
  for (const Action& action : actions) {
    std::visit([this](const auto& a) ABSL_NO_THREAD_SAFETY_ANALYSIS { Perform(a); }, action);
  }
}

void CoordinatorService::Perform(const SendDirective& action) {
  auto it = sessions_.find({action.task.role(), action.task.index(), action.task.incarnation()});
  if (it != sessions_.end()) it->second->Send(action.directive);
}

void CoordinatorService::Perform(const AppendJournal& action) {
  absl::Status status = journal_->Append(action.record, action.durable);
  if (status.ok()) return;
  // What cannot be recovered must not be promised: nothing that follows from this record is sent.
  options_.log->Error(absl::StrCat("the journal cannot be written, so the job ends: ", status.message()));
  finished_ = true;
  result_ = status;
  changed_.NotifyAll();
}

void CoordinatorService::Perform(const AppendMetrics& action) { metrics_ << action.line << "\n" << std::flush; }

void CoordinatorService::Perform(const LogLine& action) {
  if (action.severity == 'E') {
    options_.log->Error(action.text);
  } else if (action.severity == 'W') {
    options_.log->Warning(action.text);
  } else {
    options_.log->Info(action.text);
  }
}

void CoordinatorService::Perform(const AnswerSwitch& action) {
  auto node = switches_.extract(action.ticket);
  if (node.empty()) return;
  if (action.reply.ok()) *node.mapped().reply = *action.reply;
  node.mapped().reactor->Finish(ToGrpcStatus(action.reply.status()));
}

void CoordinatorService::Perform(const Finish& action) {
  finished_ = true;
  result_ = action.status;
  changed_.NotifyAll();
}

void CoordinatorService::Tick() {
  MutexLock lock(mu_);
  while (!stop_) {
    const absl::Time now = options_.clock->Now();
    if (!finished_) {
      Perform(core_->OnTick(now));
      CheckSwitchDeadlines(now);
    }
    changed_.WaitFor(mu_, kTick);
  }
}

void CoordinatorService::CheckSwitchDeadlines(absl::Time now) {
  for (auto it = switches_.begin(); it != switches_.end();) {
    if (now < it->second.deadline) {
      ++it;
      continue;
    }
    const std::string waiting_for = core_->WaitingFor();
    it->second.reactor->Finish(grpc::Status(
        grpc::StatusCode::DEADLINE_EXCEEDED,
        absl::StrCat("the change waits for ", waiting_for.empty() ? "the servers' acknowledgements" : waiting_for)));
    it = switches_.erase(it);
  }
}

grpc::ServerUnaryReactor* CoordinatorService::GetStatus(grpc::CallbackServerContext* context,
                                                        const v1::GetStatusRequest*, v1::JobStatus* reply) {
  {
    MutexLock lock(mu_);
    *reply = core_->Status(options_.clock->Now());
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::SwitchMode(grpc::CallbackServerContext* context,
                                                         const v1::SwitchModeRequest* request,
                                                         v1::SwitchModeReply* reply) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  MutexLock lock(mu_);
  if (finished_) {
    reactor->Finish(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the job is over"));
    return reactor;
  }
  const absl::Time now = options_.clock->Now();
  // A little before the caller's own deadline, so that it learns what is waited for.
  const absl::Duration left =
      absl::FromChrono(context->deadline() - std::chrono::system_clock::now()) - absl::Milliseconds(200);
  const uint64_t ticket = ++last_ticket_;
  switches_[ticket] = {reactor, reply, now + std::min(left, kSwitchTimeout)};
  Perform(core_->RequestSwitch(*request, ticket, now));
  return reactor;
}

grpc::ServerUnaryReactor* CoordinatorService::StopJob(grpc::CallbackServerContext* context,
                                                      const v1::StopJobRequest* request, v1::StopJobReply*) {
  RequestStop(request->reason().empty() ? "stopped by the operator" : request->reason());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace rubato::coordinator
