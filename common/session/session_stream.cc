#include "common/session/session_stream.h"

#include <utility>

#include "common/grpc_status.h"

namespace rubato {

SessionStream::SessionStream(v1::Coordinator::Stub* stub, Poller* poller, std::function<void()> notify)
    : notify_(std::move(notify)) {
  MutexLock lock(mu_);
  stream_ = stub->PrepareAsyncSession(&context_, poller->queue());
  stream_->StartCall(Begin(&start_));
}

bool SessionStream::can_write() {
  MutexLock lock(mu_);
  return CanWrite();
}

bool SessionStream::Write(const v1::TaskMessage& message) {
  MutexLock lock(mu_);
  if (!CanWrite()) return false;
  writing_ = true;
  stream_->Write(message, Begin(&write_));
  return true;
}

void SessionStream::CloseWrites() {
  MutexLock lock(mu_);
  if (!CanWrite()) return;
  writes_closed_ = writing_ = true;
  stream_->WritesDone(Begin(&write_));
}

void SessionStream::Cancel() { context_.TryCancel(); }

std::deque<v1::Directive> SessionStream::TakeDirectives() {
  MutexLock lock(mu_);
  return std::exchange(received_, {});
}

std::optional<absl::Status> SessionStream::done() {
  MutexLock lock(mu_);
  return done_;
}

void* SessionStream::Begin(Operation* operation) {
  ++pending_;
  return operation->tag();
}

void SessionStream::OnEvent(Operation::Method method, bool ok) {
  // The owner can see done_, and destroy the stream, only after the lock is given back.
  MutexLock lock(mu_);
  (this->*method)(ok);
  if (--pending_ == 0) done_ = FromGrpcStatus(status_);
  notify_();
}

void SessionStream::OnStarted(bool ok) {
  if (!ok) return Finish();
  open_ = true;
  stream_->Read(&incoming_, Begin(&read_));
}

void SessionStream::OnRead(bool ok) {
  if (!ok) return Finish();
  received_.push_back(std::move(incoming_));
  incoming_.Clear();
  stream_->Read(&incoming_, Begin(&read_));
}

void SessionStream::OnWritten(bool ok) {
  writing_ = false;
  // A cancelled call fails its read, which ends the stream.
  if (!ok) context_.TryCancel();
}

void SessionStream::Finish() {
  open_ = false;
  stream_->Finish(&status_, Begin(&finish_));
}

void SessionStream::OnFinished(bool) {}

}  // namespace rubato
