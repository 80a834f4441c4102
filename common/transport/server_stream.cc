#include "common/transport/server_stream.h"

#include <grpc/grpc.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/security/call_check.h"
#include "common/transport/loopback.h"
#include "common/wire/bundle.h"

namespace rubato {

ServerStream::ServerStream(uint64_t id, size_t queued_bytes_max, ConnectionHandler* handler)
    : id_(id), handler_(handler), call_(std::make_unique<Call>()), queue_(queued_bytes_max) {}

void ServerStream::Accept(RawExchangeService* service, grpc::ServerCompletionQueue* queue) {
  call_->context.AsyncNotifyWhenDone(&done_tag_);
  service->RequestExchange(&call_->context, &call_->stream, queue, queue, &accept_tag_);
}

void ServerStream::Begin() {
  peer_ = call_->context.peer();
  identity_ = PeerIdentity(*call_->context.auth_context());
  TuneLoopbackSockets(peer_);
  call_->context.AddInitialMetadata(kTakesBundles, "1");
  {
    MutexLock lock(mu_);
    if (call_->context.client_metadata().contains(kTakesBundles)) queue_.AllowBundles();
    pending_ = 2;  // The first read, and the end of the call.
  }
  call_->stream.Read(&incoming_, &read_tag_);
}

bool ServerStream::OnEvent(Operation operation, bool ok) {
  if (operation == Operation::kRead) {
    OnRead(ok);
  } else if (operation == Operation::kWrite) {
    {
      MutexLock lock(mu_);
      queue_.WriteDone();
      if (ok) messages_written_ += messages_in_write_;
      if (!ok) closed_ = true;
    }
    Advance();
  }
  SendQueue::Messages dropped;
  std::unique_ptr<Call> ended;
  {
    MutexLock lock(mu_);
    if (operation == Operation::kDone) closed_ = true;
    if (closed_) dropped = queue_.TakeAll();
    if (--pending_ == 0) ended = std::move(call_);
  }
  if (ended == nullptr) return false;
  ended.reset();
  handler_->OnClosed(id_);
  return true;
}

void ServerStream::OnRead(bool ok) {
  if (!ok) {
    {
      MutexLock lock(mu_);
      read_ended_ = true;
    }
    return Advance();
  }
  std::vector<grpc::ByteBuffer> messages(1);
  messages.front().Swap(&incoming_);
  if (IsBundle(&messages.front())) {
    absl::StatusOr<std::vector<grpc::ByteBuffer>> bundle = Unbundle(messages.front());
    if (!bundle.ok()) return Close(bundle.status());
    messages = *std::move(bundle);
  }
  {
    MutexLock lock(mu_);
    if (closed_ || draining_) return;
    messages_read_ += messages.size();
    ++pending_;  // The next read.
  }
  // Before the handler, whose answer then takes along what flow control has to say of this message. The next event is
  // handled after it all the same, by this thread.
  call_->stream.Read(&incoming_, &read_tag_);
  Deliver(std::move(messages));
}

void ServerStream::Deliver(std::vector<grpc::ByteBuffer> messages) {
  if (messages.size() == 1) return handler_->OnMessage(shared_from_this(), std::move(messages.front()));
  // What is answered at once waits for the rest, and travels together as well.
  {
    MutexLock lock(mu_);
    queue_.set_held(true);
  }
  for (grpc::ByteBuffer& message : messages) handler_->OnMessage(shared_from_this(), std::move(message));
  {
    MutexLock lock(mu_);
    queue_.set_held(false);
  }
  Advance();
}

void ServerStream::Send(grpc::ByteBuffer message, int64_t priority) {
  const size_t bytes = message.Length();
  bool taken = false;
  {
    MutexLock lock(mu_);
    if (closed_ || draining_) return;
    taken = queue_.Push(std::move(message), priority);
  }
  if (taken) return Advance();
  Close(absl::ResourceExhaustedError(
      absl::StrCat("the client does not read its answers: another one of ", bytes, " bytes does not fit the queue")));
}

void ServerStream::Close(absl::Status status) {
  SendQueue::Messages dropped;
  {
    MutexLock lock(mu_);
    if (closed_ || (draining_ && status.ok())) return;
    draining_ = true;
    if (!status.ok()) {
      closed_ = true;
      dropped = queue_.TakeAll();
      // Unlike Finish() this overtakes what the client has not read. ServerContext::TryCancel() is the same call, but
      // knows no other status than CANCELLED.
      const grpc::Status reason = ToGrpcStatus(status);
      grpc_call_cancel_with_status(call_->context.c_call(), static_cast<grpc_status_code>(reason.error_code()),
                                   reason.error_message().c_str(), nullptr);
      return;
    }
  }
  Advance();
}

void ServerStream::Advance() {
  grpc::ByteBuffer message;
  grpc::WriteOptions options;
  // gRPC is called under the lock: the event of a write can come, and be the last one, before Write() has returned, and
  // whoever handles it must not destroy the call yet.
  MutexLock lock(mu_);
  if (closed_) return;
  if (const int count = queue_.StartNext(&message); count > 0) {
    messages_in_write_ = static_cast<uint64_t>(count);
    ++pending_;
    // Small messages that wait for each other go to the socket together.
    if (!queue_.empty()) options.set_buffer_hint();
    call_->stream.Write(message, options, &write_tag_);
  } else if (StreamIsOver()) {
    closed_ = true;
    ++pending_;
    call_->stream.Finish(grpc::Status::OK, &finish_tag_);
  }
}

bool ServerStream::StreamIsOver() const {
  if (queue_.writing() || !queue_.empty()) return false;
  return draining_ || (read_ended_ && messages_written_ >= messages_read_);
}

}  // namespace rubato
