#include "coordinator/session_reactor.h"

#include <utility>

namespace rubato::coordinator {
namespace {

constexpr size_t kQueueMax = 8192;

}  // namespace

SessionReactor* SessionReactor::Start(std::string peer, Callbacks callbacks) {
  std::shared_ptr<SessionReactor> reactor(new SessionReactor(std::move(peer), std::move(callbacks)));
  reactor->self_ = reactor;
  MutexLock lock(reactor->mu_);
  reactor->StartRead(&reactor->incoming_);
  return reactor.get();
}

void SessionReactor::set_task(const v1::TaskId& task) {
  MutexLock lock(mu_);
  task_ = task;
}

v1::TaskId SessionReactor::task() {
  MutexLock lock(mu_);
  return task_;
}

void SessionReactor::Send(const v1::Directive& directive) {
  MutexLock lock(mu_);
  if (finished_ || closing_) return;
  if (queue_.size() >= kQueueMax) {
    return FinishOnce(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the task does not read its directives"));
  }
  queue_.push_back(directive);
  if (!writing_) WriteNext();
}

void SessionReactor::WriteNext() {
  writing_ = true;
  StartWrite(&queue_.front());
}

void SessionReactor::Close() {
  MutexLock lock(mu_);
  closing_ = true;
  if (!writing_) FinishOnce(grpc::Status::OK);
}

void SessionReactor::FinishOnce(grpc::Status status) {
  if (std::exchange(finished_, true)) return;
  Finish(std::move(status));
}

void SessionReactor::OnReadDone(bool ok) {
  if (!ok) {
    MutexLock lock(mu_);
    return FinishOnce(grpc::Status::OK);
  }
  v1::TaskMessage message;
  {
    MutexLock lock(mu_);
    message.Swap(&incoming_);
  }
  callbacks_.on_message(self_, message);
  MutexLock lock(mu_);
  if (!finished_) StartRead(&incoming_);
}

void SessionReactor::OnWriteDone(bool ok) {
  MutexLock lock(mu_);
  writing_ = false;
  if (!queue_.empty()) queue_.pop_front();
  if (!ok) return FinishOnce(grpc::Status::OK);
  if (finished_) return;
  if (!queue_.empty()) return WriteNext();
  if (closing_) FinishOnce(grpc::Status::OK);
}

void SessionReactor::OnCancel() {
  MutexLock lock(mu_);
  FinishOnce(grpc::Status::CANCELLED);
}

void SessionReactor::OnDone() {
  callbacks_.on_closed(self_);
  // Deletes this, unless the service still holds it.
  std::shared_ptr<SessionReactor> last = std::move(self_);
}

}  // namespace rubato::coordinator
