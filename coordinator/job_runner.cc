#include "coordinator/job_runner.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/shared_memory/boot_id.h"
#include "common/status.h"
#include "common/task.h"
#include "coordinator/rules/compact_journal.h"
#include "coordinator/rules/switch_request.h"

namespace rubato::coordinator {
namespace {

std::tuple<int, uint32_t, uint64_t> KeyOf(const v1::TaskId& task) {
  return {task.role(), task.index(), task.incarnation()};
}

absl::StatusOr<CoordinatorCore::Options> CoreOptions(const JobRunner::Options& options) {
  CoordinatorCore::Options core;
  RUBATO_ASSIGN_OR_RETURN(core.boot_id, ReadBootId());
  core.config = options.config;
  core.config_fingerprint = options.config_fingerprint;
  core.job_fingerprint = options.job_fingerprint;
  core.start = options.clock->Now();
  core.resume_ended = options.resume_ended;
  return core;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobRunner>> JobRunner::Create(Options options) {
  RUBATO_ASSIGN_OR_RETURN(const CoordinatorCore::Options core_options, CoreOptions(options));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<CoordinatorCore> core, CoordinatorCore::Create(core_options));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<RunFiles> files,
                          RunFiles::Open(options.config, options.resume, core_options.boot_id));
  absl::StatusOr<Actions> recovered = core->Recover(files->recovered(), options.clock->Now());
  if (!recovered.ok()) return Annotate(recovered.status(), absl::StrCat(options.config.run_directory(), "/journal"));
  auto runner = absl::WrapUnique(new JobRunner(std::move(options), std::move(files), std::move(core)));
  if (!runner->options_.config.observability().no_tensorboard()) {
    RUBATO_ASSIGN_OR_RETURN(runner->tensorboard_, TensorboardLog::Open(runner->options_.config, runner->Now()));
  }
  runner->Perform(*std::move(recovered));
  runner->thread_ = std::thread([self = runner.get()] { self->Run(); });
  return runner;
}

JobRunner::JobRunner(Options options, std::unique_ptr<RunFiles> files, std::unique_ptr<CoordinatorCore> core)
    : options_(std::move(options)),
      files_(std::move(files)),
      core_(std::move(core)),
      talk_([this](const v1::JournalRecord& record) { return AppendTalk(record); }) {
  talk_.Restore(files_->recovered());
}

JobRunner::~JobRunner() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mu_);
    quit_ = true;
    wake_.NotifyAll();
  }
  thread_.join();
  for (auto& [ticket, call] : switches_) call.done(absl::CancelledError("the coordinator shuts down"));
  for (auto& [ticket, call] : checkpoints_) call.done(absl::CancelledError("the coordinator shuts down"));
  talk_.End(absl::CancelledError("the coordinator shuts down"));
}

void JobRunner::OnMessage(std::shared_ptr<TaskStream> stream, v1::TaskMessage message, std::string peer) {
  Post([this, stream = std::move(stream), message = std::move(message), peer = std::move(peer)] {
    Handle(stream, message, peer);
  });
}

void JobRunner::OnClosed(std::shared_ptr<TaskStream> stream) {
  Post([this, stream = std::move(stream)] { Forget(stream); });
}

void JobRunner::GetStatus(std::function<void(v1::JobStatus)> done) {
  Post([this, done = std::move(done)] { done(Status()); });
}

std::optional<v1::JobStatus> JobRunner::AwaitStatus(absl::Duration timeout) {
  // Shared with the answer, which may come after the caller has gone.
  struct Answer {
    Mutex mu;
    CondVar came;
    std::optional<v1::JobStatus> status ABSL_GUARDED_BY(mu);
  };
  auto answer = std::make_shared<Answer>();
  GetStatus([answer](v1::JobStatus status) {
    MutexLock lock(answer->mu);
    answer->status = std::move(status);
    answer->came.NotifyAll();
  });
  const absl::Time deadline = Now() + timeout;
  MutexLock lock(answer->mu);
  while (!answer->status.has_value()) {
    const absl::Duration left = deadline - Now();
    if (left <= absl::ZeroDuration()) break;
    answer->came.WaitFor(answer->mu, left);
  }
  return answer->status;
}

void JobRunner::SwitchMode(const v1::SwitchModeRequest& request, const std::string& by, absl::Duration timeout,
                           SwitchDone done) {
  Post([this, request, by, deadline = Now() + timeout, done = std::move(done)] {
    const uint64_t ticket = next_ticket_++;
    switches_[ticket] = {deadline, done};
    PerformRequest<AnswerSwitch>(SwitchText(request), by, ticket, core_->RequestSwitch(request, ticket, Now()));
  });
}

void JobRunner::WriteCheckpoint(const std::string& by, absl::Duration timeout, CheckpointDone done) {
  Post([this, by, deadline = Now() + timeout, done = std::move(done)] {
    const uint64_t ticket = next_ticket_++;
    checkpoints_[ticket] = {deadline, done};
    PerformRequest<AnswerCheckpoint>("checkpoint", by, ticket, core_->RequestCheckpoint(ticket, Now()));
  });
}

template <class Answer>
void JobRunner::PerformRequest(const std::string& request, const std::string& by, uint64_t ticket, Actions actions) {
  absl::Status refused;
  for (const Action& action : actions) {
    const auto* answer = std::get_if<Answer>(&action);
    if (answer != nullptr && answer->ticket == ticket) refused = answer->reply.status();
  }
  Perform(core_->NoteRequest(request, by, refused, Now()));
  Perform(std::move(actions));
}

v1::JobStatus JobRunner::Status() const {
  v1::JobStatus status = core_->Status(Now());
  if (!disk_problem_.empty()) status.set_waiting_for(disk_problem_);
  return status;
}

void JobRunner::Stop(const std::string& why, const std::string& by, std::function<void()> done) {
  Post([this, why, by, done = std::move(done)] {
    Perform(core_->NoteRequest("stop", by, absl::OkStatus(), Now()));
    Perform(core_->RequestStop(absl::StrCat("stopped by the ", by, why.empty() ? "" : ": ", why), Now()));
    done();
  });
}

void JobRunner::StopBecauseOf(const std::string& reason) {
  Post([this, reason] { Perform(core_->RequestStop(reason, Now())); });
}

void JobRunner::Trace(const v1::TraceJobRequest& request, const std::string& by,
                      std::function<void(absl::StatusOr<v1::TraceJobReply>)> done) {
  Post([this, request, by, done = std::move(done)] {
    v1::TraceJobReply reply;
    absl::StatusOr<Actions> actions = core_->RequestTrace(request, &reply, Now());
    Perform(core_->NoteRequest(absl::StrCat("trace ", request.seconds(), " s"), by, actions.status(), Now()));
    if (!actions.ok()) return done(actions.status());
    Perform(*std::move(actions));
    done(std::move(reply));
  });
}

void JobRunner::PutValue(const v1::PutValueRequest& request, WorkerTalk::Done done) {
  Post([this, request, done = std::move(done)] {
    if (talk_ended_) return done(*talk_ended_);
    talk_.Put(request, done);
  });
}

void JobRunner::GetValue(const v1::GetValueRequest& request, absl::Duration timeout, WorkerTalk::ValueDone done) {
  Post([this, request, deadline = Now() + timeout, done = std::move(done)] {
    if (talk_ended_) return done(*talk_ended_);
    talk_.Get(request, Now(), deadline, done);
  });
}

void JobRunner::Barrier(const v1::BarrierRequest& request, absl::Duration timeout, WorkerTalk::Done done) {
  Post([this, request, deadline = Now() + timeout, done = std::move(done)] {
    if (talk_ended_) return done(*talk_ended_);
    talk_.Arrive(request, deadline, done);
  });
}

void JobRunner::Disagree(const std::string& reason) {
  Post([this, reason] {
    if (core_->phase() == v1::JobStatus::STARTING) Perform(core_->Abort(reason, Now()));
  });
}

absl::Status JobRunner::AppendTalk(const v1::JournalRecord& record) {
  if (disk_failed_) return absl::UnavailableError("the coordinator's disk has failed");
  absl::Status appended = files_->AppendJournal(record, /*durable=*/false);
  if (absl::IsAborted(appended)) GiveWay(appended);
  if (appended.ok()) return appended;
  return absl::UnavailableError(absl::StrCat("the coordinator cannot write it down: ", appended.message()));
}

void JobRunner::EndTalk(const absl::Status& why) {
  talk_ended_ = why;
  talk_.End(why);
}

std::optional<absl::Status> JobRunner::Wait(absl::Duration timeout) {
  const absl::Time deadline = Now() + timeout;
  MutexLock lock(mu_);
  while (!finished_) {
    const absl::Duration left = deadline - Now();
    if (left <= absl::ZeroDuration()) break;
    finished_cv_.WaitFor(mu_, left);
  }
  return finished_;
}

void JobRunner::Post(std::function<void()> event) {
  MutexLock lock(mu_);
  events_.push_back(std::move(event));
  wake_.NotifyAll();
}

void JobRunner::Run() {
  absl::Time next_tick = Now();
  while (true) {
    std::vector<std::function<void()>> events;
    {
      MutexLock lock(mu_);
      const absl::Duration left = next_tick - Now();
      if (events_.empty() && !quit_ && left > absl::ZeroDuration()) wake_.WaitFor(mu_, left);
      if (events_.empty() && quit_) return;
      events = std::exchange(events_, {});
    }
    for (const std::function<void()>& event : events) event();
    if (Now() < next_tick) continue;
    Tick();
    next_tick = Now() + options_.tick;
  }
}

void JobRunner::Handle(const std::shared_ptr<TaskStream>& stream, const v1::TaskMessage& message,
                       const std::string& peer) {
  auto known = tasks_.find(stream.get());
  if (known == tasks_.end() && !message.has_register_()) {
    return stream->Close(absl::FailedPreconditionError("the first message of a session must be Register"));
  }
  if (known != tasks_.end() && !SameTask(known->second, message.task())) {
    return stream->Close(absl::InvalidArgumentError(
        absl::StrCat("task: a message of ", TaskName(message.task()), " on the session of ", TaskName(known->second))));
  }
  if (message.has_register_()) {
    tasks_[stream.get()] = message.task();
    streams_[KeyOf(message.task())] = stream;
  }
  if (message.heartbeat().sent_unix_nanos() != 0) {
    v1::Directive answer;
    answer.mutable_clock()->set_sent_unix_nanos(message.heartbeat().sent_unix_nanos());
    answer.mutable_clock()->set_coordinator_unix_nanos(absl::ToUnixNanos(Now()));
    stream->Send(answer);
  }
  Perform(core_->OnMessage(message, peer, Now()));
  stream->Handled();
}

void JobRunner::Forget(const std::shared_ptr<TaskStream>& stream) {
  auto known = tasks_.find(stream.get());
  if (known == tasks_.end()) return;
  const v1::TaskId task = known->second;
  tasks_.erase(known);
  auto current = streams_.find(KeyOf(task));
  // A task that is back already has another stream.
  if (current == streams_.end() || current->second != stream) return;
  streams_.erase(current);
  Perform(core_->OnDisconnect(task, Now()));
}

void JobRunner::Tick() {
  const absl::Time now = Now();
  PerformWaiting();
  Perform(core_->OnTick(now));
  const auto [generation, step] = core_->Position();
  options_.log->SetPosition(generation, step);
  Expire("the switch", now, &switches_);
  Expire("the checkpoint", now, &checkpoints_);
  talk_.Tick(now);
}

template <class Done>
void JobRunner::Expire(absl::string_view what, absl::Time now, Calls<Done>* calls) {
  for (auto call = calls->begin(); call != calls->end();) {
    if (now < call->second.deadline) {
      ++call;
      continue;
    }
    const std::string waiting = Status().waiting_for();
    call->second.done(absl::DeadlineExceededError(
        absl::StrCat(what, " waits for ", waiting.empty() ? "the servers" : waiting, "; it stays requested")));
    call = calls->erase(call);
  }
}

template <class Done, class Reply>
void JobRunner::AnswerCall(Calls<Done>* calls, uint64_t ticket, const Reply& reply) {
  auto call = calls->find(ticket);
  if (call == calls->end()) return;
  call->second.done(reply);
  calls->erase(call);
}

void JobRunner::Perform(Actions actions) {
  std::move(actions.begin(), actions.end(), std::back_inserter(waiting_));
  PerformWaiting();
}

void JobRunner::PerformWaiting() {
  // An action may ask for others, which come after it.
  if (performing_ || waiting_.empty()) return;
  if (absl::Status owner = files_->CheckOwner(); !owner.ok()) return GiveWay(owner);
  performing_ = true;
  while (!waiting_.empty()) {
    absl::Status status = PerformOne(waiting_.front());
    if (absl::IsAborted(status)) {
      GiveWay(status);
      break;
    }
    if (absl::IsResourceExhausted(status)) {
      if (disk_problem_.empty()) {
        options_.log->Warning(absl::StrCat(status.message(), "; the coordinator waits until there is room"));
      }
      disk_problem_ = absl::StrCat("room on the coordinator's disk (", status.message(), ")");
      break;
    }
    if (!disk_problem_.empty()) options_.log->Info("there is room on the coordinator's disk again");
    disk_problem_.clear();
    waiting_.pop_front();
    if (status.ok()) continue;
    // What was to follow depends on what could not be written.
    disk_failed_ = true;
    options_.log->Error(status.message());
    waiting_.clear();
    for (Action& action : core_->Abort(absl::StrCat("the coordinator cannot go on: ", status.message()), Now())) {
      waiting_.push_back(std::move(action));
    }
  }
  performing_ = false;
}

void JobRunner::GiveWay(const absl::Status& why) {
  waiting_.clear();
  EndTalk(absl::UnavailableError("another coordinator has taken this one's place"));
  MutexLock lock(mu_);
  if (finished_) return;
  options_.log->Error(absl::StrCat(why.message(), "; this one ends and changes nothing more"));
  finished_ = why;
  finished_cv_.NotifyAll();
}

absl::Status JobRunner::RestartCore() {
  RUBATO_ASSIGN_OR_RETURN(CoordinatorCore::Options options, CoreOptions(options_));
  options.counts = core_->counts();
  RUBATO_ASSIGN_OR_RETURN(std::vector<v1::JournalRecord> records, files_->ReadBackJournal());
  records = CompactJournal(records);
  RUBATO_RETURN_IF_ERROR(files_->ReplaceJournal(records));
  RUBATO_ASSIGN_OR_RETURN(std::unique_ptr<CoordinatorCore> core, CoordinatorCore::Create(options));
  RUBATO_ASSIGN_OR_RETURN(Actions actions, core->Recover(records, Now()));
  core_ = std::move(core);
  Perform(std::move(actions));
  return absl::OkStatus();
}

void JobRunner::NoteLostLine(const absl::Status& status) {
  if (!status.ok() && !line_lost_) {
    options_.log->Warning(absl::StrCat("the run record misses lines: ", status.message()));
  }
  line_lost_ = !status.ok();
}

void JobRunner::WarnOfCutRecord(const absl::Status& status) {
  // The journal has it too.
  if (!status.ok()) options_.log->Warning(absl::StrCat("record of a checkpoint: ", status.message()));
}

void JobRunner::CheckTensorboard(const absl::Status& status) {
  if (status.ok()) return;
  options_.log->Warning(absl::StrCat("the event files for TensorBoard end here: ", status.message()));
  tensorboard_ = nullptr;
}

absl::Status JobRunner::PerformOne(const Action& action) {
  if (const auto* send = std::get_if<SendDirective>(&action)) {
    auto stream = streams_.find(KeyOf(send->task));
    if (stream != streams_.end()) stream->second->Send(send->directive);
  } else if (const auto* journal = std::get_if<AppendJournal>(&action)) {
    if (!disk_failed_) return files_->AppendJournal(journal->record, journal->durable);
  } else if (const auto* metrics = std::get_if<AppendMetrics>(&action)) {
    if (options_.on_line != nullptr) options_.on_line(metrics->line);
    if (tensorboard_ != nullptr) CheckTensorboard(tensorboard_->OnLine(Now(), metrics->line));
    if (!disk_failed_) NoteLostLine(files_->AppendMetrics(metrics->line));
  } else if (const auto* tensors = std::get_if<AppendTensors>(&action)) {
    if (tensorboard_ != nullptr) CheckTensorboard(tensorboard_->OnTensors(Now(), tensors->report));
  } else if (const auto* log = std::get_if<LogLine>(&action)) {
    if (log->severity == 'I') options_.log->Info(log->text);
    if (log->severity == 'W') options_.log->Warning(log->text);
    if (log->severity == 'E') options_.log->Error(log->text);
  } else if (const auto* answer = std::get_if<AnswerSwitch>(&action)) {
    AnswerCall(&switches_, answer->ticket, answer->reply);
  } else if (const auto* written = std::get_if<AnswerCheckpoint>(&action)) {
    AnswerCall(&checkpoints_, written->ticket, written->reply);
  } else if (const auto* cut = std::get_if<WriteCutRecord>(&action)) {
    WarnOfCutRecord(files_->WriteCutRecord(cut->record.cut().name(), cut->record));
  } else if (const auto* remove = std::get_if<RemoveCutRecords>(&action)) {
    WarnOfCutRecord(files_->RemoveCutRecords(remove->keep));
  } else if (std::holds_alternative<coordinator::RestartCore>(action)) {
    return RestartCore();
  } else if (const auto* finish = std::get_if<Finish>(&action)) {
    EndTalk(absl::AbortedError("the job has ended"));
    MutexLock lock(mu_);
    finished_ = finish->status;
    finished_cv_.NotifyAll();
  }
  return absl::OkStatus();
}

}  // namespace rubato::coordinator
