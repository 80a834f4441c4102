#include "client/sidecar/member.h"

#include <utility>

#include "common/config/checkpoint_directory.h"
#include "common/status.h"
#include "worker/ps_client/worker_metrics.h"

namespace rubato::client {
namespace {

// How long a worker that gives up tries to say why.
constexpr absl::Duration kShortGoodbye = absl::Seconds(1);
constexpr absl::Duration kPoll = absl::Milliseconds(200);

}  // namespace

Member::Member(Options options)
    : options_(std::move(options)),
      cuts_({.directory = CheckpointDirectory(*options_.config),
             .job_name = options_.config->name(),
             .servers = options_.config->cluster().servers(),
             .task = options_.task,
             .clock = options_.clock,
             .log = options_.log}) {}

absl::Status Member::Run() {
  RUBATO_ASSIGN_OR_RETURN(membership_,
                          Membership::Create({.config = options_.config,
                                              .spec = options_.spec,
                                              .task = options_.task,
                                              .security = options_.security,
                                              .coordinator = options_.coordinator,
                                              .term = options_.term,
                                              .metrics_address = options_.metrics_address,
                                              .health = options_.health,
                                              .timeout = options_.timeout,
                                              .heartbeat = [this] { return Heartbeat(); },
                                              .on_work = [this](const v1::Directive& directive) { OnWork(directive); },
                                              .on_over = [this](const absl::Status& why) { OnOver(why); },
                                              .clock = options_.clock,
                                              .log = options_.log}));
  absl::Status gave_up;
  {
    MutexLock lock(mu_);
    joined_ = membership_.get();
    gave_up = gave_up_;
  }
  if (!gave_up.ok()) membership_->GiveUp(gave_up);
  membership_->Start();
  const absl::StatusOr<End> end = Train();
  absl::Status status = end.status();
  if (end.ok() && *end == End::kDone) status = AwaitClose();
  // Whatever it noticed first has the same reason.
  if (!status.ok() && membership_->is_over()) status = membership_->over();
  restarts_ = membership_->restarts();
  Leave(status, end.ok() && *end == End::kDrained);
  term_ = membership_->term();
  return status;
}

absl::StatusOr<Member::End> Member::Train() {
  RUBATO_ASSIGN_OR_RETURN(const std::optional<Membership::News> news, AwaitPlan());
  if (!news.has_value()) return options_.queue->closes() ? End::kClosed : End::kDrained;
  return Step(*news);
}

absl::StatusOr<std::optional<Membership::News>> Member::AwaitPlan() {
  bool assigned = false;
  for (;;) {
    RUBATO_ASSIGN_OR_RETURN(const Membership::News news,
                            membership_->Await(
                                [&](const Membership::News& told) {
                                  return told.job.has_value() &&
                                         (told.plan.generation() != 0 || (told.assigns && !assigned));
                                },
                                [this] { return options_.queue->leaves(); }));
    if (options_.queue->leaves()) return std::nullopt;
    if (news.plan.generation() != 0) return news;
    RUBATO_RETURN_IF_ERROR(AssignInitialWeights(*news.job));
    assigned = true;
  }
}

absl::Status Member::AssignInitialWeights(const v1::JobDescription& job) {
  options_.log->Info("gives its weights to the servers, as the initial ones");
  worker::InitialWeights initial(
      {.job = job,
       .task = options_.task,
       .security = options_.security,
       .tensors = static_cast<int>(options_.spec->tensors.size()),
       .message_bytes = static_cast<int64_t>(options_.config->cluster().message_bytes()),
       .memory = options_.memory,
       .state = options_.state,
       .reconnect_timeout = absl::Seconds(options_.config->cluster().start_timeout_seconds()),
       .wait_timeout = absl::Seconds(options_.config->cluster().wait_timeout_seconds()),
       .clock = options_.clock,
       .log = options_.log});
  {
    MutexLock lock(mu_);
    initial_ = &initial;
  }
  // What came before that.
  if (absl::Status over = membership_->over(); !over.ok()) initial.Cancel(std::move(over));
  absl::Status assigned = initial.Assign();
  MutexLock lock(mu_);
  initial_ = nullptr;
  return assigned;
}

StepLoop::Options Member::StepOptions(const v1::JobDescription& job) {
  return {.config = options_.config,
          .task = options_.task,
          .security = options_.security,
          .job = job,
          .spec = options_.spec,
          .memory = options_.memory,
          .queue = options_.queue,
          .calls = options_.calls,
          .arrivals = options_.arrivals,
          .keep_weights = options_.keep_weights,
          .cuts = &cuts_,
          .slow = options_.slow,
          .network = options_.network,
          .rollbacks = options_.rollbacks,
          .answer_begin = options_.answer_begin,
          .answer_moved = options_.answer_moved,
          .answer_has_weights = options_.answer_has_weights,
          .answer_rows = options_.answer_rows,
          .leases = {.send =
                         [this](const v1::ShardRequest& request) {
                           v1::TaskMessage message;
                           *message.mutable_shard_request() = request;
                           membership_->Send(std::move(message));
                         },
                     .answer = options_.answer_lease,
                     .hold = options_.rollbacks > 0,
                     .clock = options_.clock},
          .send_tensors =
              [this](v1::TensorReport report) {
                v1::TaskMessage message;
                *message.mutable_tensors() = std::move(report);
                membership_->Send(std::move(message));
              },
          .beat = [this] { membership_->Beat(); },
          .newest_plan = [this] { return membership_->plan(); },
          .clock_offset = [this] { return membership_->clock_offset(); },
          .cancelled = [this] { return membership_->is_over(); },
          .clock = options_.clock,
          .log = options_.log};
}

absl::StatusOr<Member::End> Member::Step(const Membership::News& news) {
  // Checkpoint step0 has it now.
  *options_.state = {};
  RUBATO_ASSIGN_OR_RETURN(const std::unique_ptr<StepLoop> steps, StepLoop::Create(StepOptions(*news.job)));
  {
    MutexLock lock(mu_);
    steps_ = steps.get();
    job_ = news.job;
    if (lease_request_.has_value()) steps->leases()->Want(*std::exchange(lease_request_, std::nullopt));
  }
  if (absl::Status over = membership_->over(); !over.ok()) steps->Cancel(std::move(over));
  const absl::StatusOr<End> end = steps->Run(news.plan);
  MutexLock lock(mu_);
  steps->Describe(&last_progress_);  // For the heartbeat that goes before the goodbye.
  last_trace_ = steps->last_trace();
  steps_ = nullptr;
  job_.reset();
  return end;
}

void Member::OnClientBegins() {
  MutexLock lock(mu_);
  if (steps_ != nullptr) steps_->OnClientBegins();
}

std::optional<v1::JobDescription> Member::job() {
  MutexLock lock(mu_);
  return job_;
}

absl::Status Member::AwaitClose() {
  v1::WorkerProgress done;
  {
    MutexLock lock(mu_);
    done = last_progress_;
  }
  options_.log->Info("has done its part");
  membership_->RegisterDone(done);
  while (!options_.queue->closes()) {
    RUBATO_RETURN_IF_ERROR(membership_->over());
    if (options_.calls->begin.has_value()) options_.answer_end(*std::exchange(options_.calls->begin, std::nullopt));
    if (options_.calls->read.has_value()) {
      options_.answer_end(std::exchange(options_.calls->read, std::nullopt)->request);
    }
    const std::optional<Frame> frame = options_.queue->Next(kPoll);
    if (frame.has_value() && frame->kind == FrameKind::kBegin) options_.calls->begin = frame->request;
    if (frame.has_value() && frame->kind == FrameKind::kReadRows) options_.calls->read = frame;
    if (frame.has_value() && frame->kind == FrameKind::kHasWeights) options_.answer_end(frame->request);
  }
  return absl::OkStatus();
}

void Member::Leave(const absl::Status& status, bool drained) {
  // The end of the job is no failure of this worker.
  const bool failed = !status.ok() && !absl::IsCancelled(status);
  membership_->Leave(failed ? status : absl::OkStatus(), drained, status.ok() ? options_.timeout : kShortGoodbye);
}

v1::Heartbeat Member::Heartbeat() {
  v1::Heartbeat heartbeat;
  if (v1::CutProgress cut = cuts_.progress(); cut.id() != 0) *heartbeat.mutable_cut() = std::move(cut);
  MutexLock lock(mu_);
  if (steps_ != nullptr) {
    steps_->Describe(&last_progress_);
    last_trace_ = steps_->last_trace();
  }
  *heartbeat.mutable_progress() = last_progress_;
  *heartbeat.mutable_trace() = last_trace_;
  return heartbeat;
}

void Member::AddMetrics(MetricText* text) {
  const v1::WorkerProgress progress = Heartbeat().progress();
  Membership* membership = nullptr;
  {
    MutexLock lock(mu_);
    membership = joined_;
  }
  // Which calls back.
  worker::AddWorkerMetrics(progress, membership == nullptr ? v1::Plan() : membership->plan(), text);
}

void Member::OnWork(const v1::Directive& directive) {
  if (directive.has_keep_checkpoints()) return cuts_.Keep(directive.keep_checkpoints());
  MutexLock lock(mu_);
  if (directive.has_shard_grant() && steps_ != nullptr) steps_->leases()->OnGrant(directive.shard_grant());
  if (!directive.has_record_trace()) return;
  if (steps_ != nullptr) return steps_->Record(directive.record_trace());
  last_trace_.Clear();
  last_trace_.set_id(directive.record_trace().id());
  last_trace_.set_error("the worker does not train");
}

void Member::OnOver(const absl::Status& why) {
  MutexLock lock(mu_);
  if (initial_ != nullptr) initial_->Cancel(why);
  if (steps_ != nullptr) steps_->Cancel(why);
  options_.queue->Wake();
}

void Member::WantLease(uint32_t request) {
  MutexLock lock(mu_);
  if (steps_ == nullptr) {
    lease_request_ = request;
  } else {
    steps_->leases()->Want(request);
  }
}

void Member::GiveUp(absl::Status why) {
  Membership* membership = nullptr;
  {
    MutexLock lock(mu_);
    gave_up_ = why;
    membership = joined_;
  }
  // Which calls back.
  if (membership != nullptr) membership->GiveUp(std::move(why));
}

}  // namespace rubato::client
