#ifndef RUBATO_COMMON_SESSION_SESSION_STREAM_H_
#define RUBATO_COMMON_SESSION_SESSION_STREAM_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/async_stream.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "common/transport/poller.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato {

// One Session stream, made for a single owning thread: the poller's thread only puts what happened into it and calls
// `notify`. Thread-safe. To be destroyed after done() alone.
class SessionStream final {
 public:
  // Opens the stream. `stub` and `poller` outlive it. `notify` is called on the poller's thread with the stream's lock
  // held, and never after done() was seen; it must not call the stream.
  SessionStream(v1::Coordinator::Stub* stub, Poller* poller, std::function<void()> notify);
  SessionStream(const SessionStream&) = delete;
  SessionStream& operator=(const SessionStream&) = delete;

  // Whether Write would begin to write: the stream is open, and the last message has been written.
  bool can_write();
  // Begins to write. False, and nothing happens, if it cannot.
  bool Write(const v1::TaskMessage& message);
  // Nothing more will be written. Has no effect while a message is being written.
  void CloseWrites();
  // Breaks the stream; done() follows soon.
  void Cancel();

  // What has arrived since the last call.
  std::deque<v1::Directive> TakeDirectives();
  // Set once gRPC is through with the stream.
  std::optional<absl::Status> done();

 private:
  // The end of one of the stream's operations.
  class Operation final : public Poller::Event {
   public:
    using Method = void (SessionStream::*)(bool ok);
    Operation(SessionStream* stream, Method method) : stream_(stream), method_(method) {}
    void OnEvent(bool ok) override { stream_->OnEvent(method_, ok); }

   private:
    SessionStream* const stream_;
    const Method method_;
  };

  void OnEvent(Operation::Method method, bool ok);
  void OnStarted(bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnRead(bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnWritten(bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnFinished(bool ok) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Counts an operation that is about to be started; returns its tag.
  void* Begin(Operation* operation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Nothing can be written or read any more; asks why.
  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool CanWrite() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return open_ && !writing_ && !writes_closed_; }

  const std::function<void()> notify_;
  grpc::ClientContext context_;
  Mutex mu_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::TaskMessage, v1::Directive>> stream_ ABSL_GUARDED_BY(mu_);
  Operation start_{this, &SessionStream::OnStarted};
  Operation read_{this, &SessionStream::OnRead};
  Operation write_{this, &SessionStream::OnWritten};
  Operation finish_{this, &SessionStream::OnFinished};
  // Operations whose events are to come.
  int pending_ ABSL_GUARDED_BY(mu_) = 0;
  v1::Directive incoming_ ABSL_GUARDED_BY(mu_);
  std::deque<v1::Directive> received_ ABSL_GUARDED_BY(mu_);
  // From the start of the call until a read of it has failed.
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool writes_closed_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> done_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato

#endif  // RUBATO_COMMON_SESSION_SESSION_STREAM_H_
