#include "coordinator/session_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/limits/peer_name.h"
#include "common/security/call_check.h"
#include "common/security/sender.h"
#include "common/tsan.h"

namespace rubato::coordinator {

SessionReactor* SessionReactor::Start(JobRunner* runner, grpc::CallbackServerContext* context, PeerCounts::Place place,
                                      RefusalLog* refusals) {
  std::shared_ptr<SessionReactor> reactor(new SessionReactor(runner, context, std::move(place), refusals));
  SessionReactor* raw = reactor.get();
  MutexLock lock(raw->mu_);
  raw->self_ = std::move(reactor);
  raw->StartRead(&raw->incoming_);
  TsanRelease(raw);  // gRPC's threads take it from here.
  return raw;
}

SessionReactor::SessionReactor(JobRunner* runner, grpc::CallbackServerContext* context, PeerCounts::Place place,
                               RefusalLog* refusals)
    : runner_(runner),
      context_(context),
      peer_(context->peer()),
      identity_(PeerIdentity(*context->auth_context())),
      refusals_(refusals),
      place_(std::move(place)) {}

void SessionReactor::Note(absl::string_view kind, absl::string_view why) const {
  if (refusals_ != nullptr) refusals_->Note(PeerName(identity_, peer_), kind, why);
}

void SessionReactor::Send(const v1::Directive& directive) {
  MutexLock lock(mu_);
  if (closing_ || finished_) return;
  if (queue_.size() >= kMaxQueued) {
    closing_ = true;
    broken_ = true;
    status_ = absl::ResourceExhaustedError(
        absl::StrCat("the task does not read its directives: ", kMaxQueued, " wait, and no more may"));
    Note("directives", status_.message());
    // A write that the peer never takes ends only with the call.
    context_->TryCancel();
    return MaybeFinish();
  }
  queue_.push_back(directive);
  if (writing_) return;
  writing_ = true;
  StartWrite(&queue_.front());
}

void SessionReactor::Handled() {
  MutexLock lock(mu_);
  if (!closing_ && !finished_) StartRead(&incoming_);
}

void SessionReactor::Close(const absl::Status& why) {
  MutexLock lock(mu_);
  if (closing_) return;
  closing_ = true;
  status_ = why;
  MaybeFinish();
}

void SessionReactor::OnReadDone(bool ok) {
  TsanAcquire(this);
  std::shared_ptr<SessionReactor> self;
  v1::TaskMessage message;
  {
    MutexLock lock(mu_);
    if (!ok) {
      // gRPC does not say which of these it was.
      if (!heard_ && !closing_) {
        Note("session", "a session, which ended before a message of it could be taken: none came, or too long a one");
      }
      closing_ = true;
      return MaybeFinish();
    }
    heard_ = true;
    message = std::exchange(incoming_, v1::TaskMessage());
    self = self_;
  }
  if (absl::Status sender = CheckSender(identity_, message.task()); !sender.ok()) {
    Note("sender", sender.message());
    return Close(sender);
  }
  runner_->OnMessage(std::move(self), std::move(message), peer_);
}

void SessionReactor::OnWriteDone(bool ok) {
  TsanAcquire(this);
  MutexLock lock(mu_);
  writing_ = false;
  queue_.pop_front();
  if (!ok) {
    closing_ = true;
    broken_ = true;
  }
  if (!broken_ && !queue_.empty()) {
    writing_ = true;
    StartWrite(&queue_.front());
    return;
  }
  MaybeFinish();
}

void SessionReactor::OnCancel() {
  TsanAcquire(this);
  MutexLock lock(mu_);
  closing_ = true;
  broken_ = true;
  MaybeFinish();
}

void SessionReactor::OnDone() {
  TsanAcquire(this);
  std::shared_ptr<SessionReactor> self;
  {
    MutexLock lock(mu_);
    self = std::move(self_);
  }
  runner_->OnClosed(std::move(self));
}

void SessionReactor::MaybeFinish() {
  if (!closing_ || writing_ || finished_) return;
  finished_ = true;
  place_.reset();
  Finish(ToGrpcStatus(status_));
}

}  // namespace rubato::coordinator
