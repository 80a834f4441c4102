#include "common/transport/server_stream.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/limits/peer_name.h"
#include "common/security/call_check.h"
#include "common/transport/loopback.h"
#include "common/wire/bundle.h"

namespace rubato {
namespace {

// A message up to this is answered before the next one is asked for, so that the answer takes along what flow control
// has to say of it (docs/decisions/0036). The window of a larger one is worth more to the peer while it is handled.
constexpr size_t kReadLastBytesMax = size_t{1} << 19;

}  // namespace

ServerStream::ServerStream(uint64_t id, const PortLimits& limits, RefusalLog* refusals, Owner* owner,
                           ConnectionHandler* handler)
    : id_(id),
      message_bytes_most_(limits.message_bytes),
      unanswered_most_(limits.unanswered_requests),
      unanswered_bytes_most_(limits.unanswered_bytes),
      refusals_(refusals),
      owner_(owner),
      handler_(handler),
      call_(std::make_unique<Call>()),
      queue_(limits.queued_bytes, SendQueue::Little::kBefore) {}

void ServerStream::Accept(RawExchangeService* service, grpc::ServerCompletionQueue* queue) {
  call_->context.AsyncNotifyWhenDone(done_event_.tag());
  service->RequestExchange(&call_->context, &call_->stream, queue, queue, accept_event_.tag());
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
  call_->stream.Read(&incoming_, read_event_.tag());
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
  NoteUnheard(*ended);
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
  const bool read_last = messages.front().Length() <= kReadLastBytesMax;
  if (IsBundle(&messages.front())) {
    absl::StatusOr<std::vector<grpc::ByteBuffer>> bundle = Unbundle(messages.front());
    if (!bundle.ok()) return Refuse("messages", bundle.status());
    messages = *std::move(bundle);
  }
  absl::Status room;
  {
    MutexLock lock(mu_);
    if (closed_ || draining_) return;
    messages_read_ += messages.size();
    for (const grpc::ByteBuffer& message : messages) unreleased_bytes_ += message.Length();
    room = CheckUnanswered();
  }
  if (!room.ok()) return Refuse("requests", room);
  // The next event is handled after this one all the same, by this thread.
  if (!read_last) {
    MutexLock lock(mu_);
    BeginRead();
  }
  Deliver(std::move(messages));
  if (!read_last) return;
  MutexLock lock(mu_);
  // A read would send what gRPC holds back for the large answer to come.
  read_due_ = queue_.large_follows();
  if (!read_due_) BeginRead();
}

void ServerStream::BeginRead() {
  if (closed_ || draining_) return;
  ++pending_;
  call_->stream.Read(&incoming_, read_event_.tag());
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

absl::Status ServerStream::CheckUnanswered() const {
  if (unanswered_most_ > 0 && messages_read_ > answers_ + unanswered_most_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the client has ", unanswered_most_, " requests unanswered; no more at the same time"));
  }
  if (unanswered_bytes_most_ > 0 && unreleased_bytes_ > unanswered_bytes_most_) {
    return absl::ResourceExhaustedError(absl::StrCat("the client's unanswered requests have ", unreleased_bytes_,
                                                     " bytes; allowed: up to ", unanswered_bytes_most_));
  }
  return absl::OkStatus();
}

void ServerStream::Release(size_t bytes) {
  MutexLock lock(mu_);
  unreleased_bytes_ -= std::min(bytes, unreleased_bytes_);
}

void ServerStream::Refuse(absl::string_view kind, const absl::Status& why) {
  Note(kind, why.message());
  Close(why);
}

void ServerStream::Note(absl::string_view kind, absl::string_view why) const {
  if (refusals_ != nullptr) refusals_->Note(PeerName(identity_, peer_), kind, why);
}

void ServerStream::NoteUnheard(const Call& call) {
  {
    MutexLock lock(mu_);
    if (messages_read_ > 0 || refused_ || !call.context.IsCancelled()) return;
  }
  // gRPC does not say which of these it was.
  Note("messages", absl::StrCat("a stream, which broke off before a message of it could be taken: none came, or one of "
                                "more than ",
                                message_bytes_most_, " bytes"));
}

void ServerStream::Send(grpc::ByteBuffer&& message, int64_t priority) {
  const size_t bytes = message.Length();
  bool taken = false;
  {
    MutexLock lock(mu_);
    if (closed_ || draining_) return;
    ++answers_;
    taken = queue_.Push(std::move(message), priority);
  }
  if (taken) return Advance();
  Refuse("answers", absl::ResourceExhaustedError(absl::StrCat("the client does not read its answers: another one of ",
                                                              bytes, " bytes does not fit the queue")));
}

void ServerStream::Close(absl::Status status) {
  SendQueue::Messages dropped;
  {
    MutexLock lock(mu_);
    if (closed_ || (draining_ && status.ok())) return;
    draining_ = true;
    if (!status.ok()) {
      closed_ = true;
      refused_ = true;
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
    call_->stream.Write(message, options, write_event_.tag());
    if (read_due_ && !queue_.large_follows()) {
      read_due_ = false;
      BeginRead();
    }
  } else if (StreamIsOver()) {
    closed_ = true;
    ++pending_;
    call_->stream.Finish(grpc::Status::OK, finish_event_.tag());
  }
}

bool ServerStream::StreamIsOver() const {
  if (queue_.writing() || !queue_.empty()) return false;
  return draining_ || (read_ended_ && messages_written_ >= messages_read_);
}

}  // namespace rubato
