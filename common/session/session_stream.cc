#include "common/session/session_stream.h"

#include <utility>

#include "common/grpc_status.h"
#include "common/tsan.h"

namespace rubato {

SessionStream::SessionStream(v1::Coordinator::Stub* stub, std::function<void()> notify) : notify_(std::move(notify)) {
  MutexLock lock(mu_);
  stub->async()->Session(&context_, this);
  AddHold();
  StartRead(&incoming_);
  TsanRelease(this);  // gRPC's threads take it from here.
  StartCall();
}

bool SessionStream::Write(const v1::TaskMessage& message) {
  MutexLock lock(mu_);
  if (writing_ || writes_closed_ || broken_) return false;
  outgoing_ = message;
  writing_ = true;
  StartWrite(&outgoing_);
  return true;
}

void SessionStream::CloseWrites() {
  MutexLock lock(mu_);
  if (writing_ || writes_closed_ || broken_) return;
  writes_closed_ = true;
  StartWritesDone();
}

void SessionStream::Cancel() { context_.TryCancel(); }

std::deque<v1::Directive> SessionStream::TakeDirectives() {
  MutexLock lock(mu_);
  return std::exchange(received_, {});
}

bool SessionStream::writing() {
  MutexLock lock(mu_);
  return writing_;
}

std::optional<absl::Status> SessionStream::done() {
  MutexLock lock(mu_);
  return done_;
}

void SessionStream::OnReadDone(bool ok) {
  TsanAcquire(this);
  MutexLock lock(mu_);
  if (ok) {
    received_.push_back(std::move(incoming_));
    incoming_.Clear();
    StartRead(&incoming_);
  } else {
    Break();
  }
  notify_();
}

void SessionStream::OnWriteDone(bool ok) {
  TsanAcquire(this);
  MutexLock lock(mu_);
  writing_ = false;
  // A cancelled call fails its read, which breaks the stream.
  if (!ok) context_.TryCancel();
  notify_();
}

void SessionStream::OnWritesDoneDone(bool) {}

void SessionStream::OnDone(const grpc::Status& status) {
  TsanAcquire(this);
  // The owner can see done_, and destroy the stream, only after the lock is given back.
  MutexLock lock(mu_);
  done_ = FromGrpcStatus(status);
  notify_();
}

void SessionStream::Break() {
  if (!std::exchange(broken_, true)) RemoveHold();
}

}  // namespace rubato
