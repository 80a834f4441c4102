#ifndef RUBATO_COMMON_TRANSPORT_EXCHANGE_CLIENT_H_
#define RUBATO_COMMON_TRANSPORT_EXCHANGE_CLIENT_H_

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/security/task_security.h"
#include "common/transport/keepalive.h"
#include "common/transport/loopback.h"
#include "common/transport/poller.h"
#include "common/transport/send_queue.h"

namespace rubato {

// One stream of rubato.v1.ParameterServer/Exchange to a server, with messages as raw bytes: a poller that clients share
// moves them between gRPC and a handler. A stream that broke stays broken; its owner makes a new client. Thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto client, ExchangeClient::Create({.address = "host:7000"}, &handler));
//   client->Send(EncodeRequest(header, {gradient}));
class ExchangeClient {
 public:
  // Called on the poller's thread, which must not be blocked, and on which no client must be created, shut down or
  // destroyed. One call of a client's handler comes after the other.
  class Handler {
   public:
    virtual ~Handler() = default;
    // Messages that came together, at least one, in the order in which they were sent. What is sent from here travels
    // together as well. May come before Create has returned.
    virtual void OnMessages(std::vector<grpc::ByteBuffer> messages) = 0;
    // The stream is broken; the last call. Heard of within 50 ms if no answer is awaited, else at once. Comes once
    // after a Create that succeeded, unless Shutdown comes first. Never OK: Unavailable when the server ended the
    // stream or is gone (or keepalive did not reach it), ResourceExhausted when too much waited to be sent, otherwise
    // the server's own status.
    virtual void OnDisconnected(absl::Status status) = 0;
  };

  struct Options {
    // "host:port".
    std::string address = {};
    // Which server that is, and how the client proves that it belongs to the job. Null: it does not, and any server
    // will do.
    uint32_t server = 0;
    std::shared_ptr<const TaskSecurity> security = nullptr;
    // For Create, > 0.
    absl::Duration connect_timeout = absl::Seconds(5);
    // A larger message breaks the stream. 1 to 2^31 - 1.
    size_t max_message_bytes = (size_t{1} << 28) + (size_t{1} << 20);
    // That may wait to be sent; when it would be more, the stream is broken with ResourceExhausted.
    size_t max_queued_bytes = size_t{1} << 32;
    Keepalive keepalive = {};
  };

  // Connects, and blocks until that is done. `handler` outlives the client. InvalidArgument: an option is out of range.
  // Unavailable: nobody answers there. DeadlineExceeded: not within connect_timeout.
  static absl::StatusOr<std::unique_ptr<ExchangeClient>> Create(Options options, Handler* handler);

  // As Shutdown.
  ~ExchangeClient();

  // Queues a message, ahead of those that wait with a higher priority number; never blocks on the network. Dropped when
  // the stream is broken. Some of the work of sending is done here, and the memory of messages may be released here.
  void Send(grpc::ByteBuffer&& message, int64_t priority = 0);
  // As Send, but the message waits for a Flush, or until what waits fills a bundle, so that it travels together.
  void Queue(grpc::ByteBuffer&& message, int64_t priority = 0);
  void Flush() { Advance(); }

  // False once the stream is broken or shut down.
  bool connected();

  // Breaks the stream. No handler call is running or comes after it has returned. Not to be called from the handler.
  void Shutdown();

 private:
  enum class Operation { kStart, kRead, kReadTimer, kWrite, kFinish };
  class OperationEvent final : public Poller::Event {
   public:
    OperationEvent(ExchangeClient* client, Operation operation) : client_(client), operation_(operation) {}
    void OnEvent(bool ok) override { client_->OnEvent(operation_, ok); }

   private:
    ExchangeClient* const client_;
    const Operation operation_;
  };

  ExchangeClient(Options options, Handler* handler);

  absl::Status Connect();
  // What follows, up to OnEnd, is called on the poller's thread.
  void OnEvent(Operation operation, bool ok);
  void BeginRead();
  void OnRead();
  // Leaves the next read to the next write, whose data then takes along what flow control has to say of the last
  // message; or to a timer, since the end of the stream is heard of by reading.
  void PutOffRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Hands over what has arrived together.
  void Deliver(std::vector<grpc::ByteBuffer> messages);
  void Finish();
  // After the last event.
  void OnEnd();
  // Starts the next write when it is due.
  void Advance();
  // Ends the stream for a reason of our own; only the first one counts.
  void Break(absl::Status status);

  const Options options_;
  Handler* const handler_;
  OperationEvent start_event_{this, Operation::kStart};
  OperationEvent read_event_{this, Operation::kRead};
  OperationEvent read_timer_event_{this, Operation::kReadTimer};
  OperationEvent write_event_{this, Operation::kWrite};
  OperationEvent finish_event_{this, Operation::kFinish};
  const std::shared_ptr<Poller> poller_ = Poller::Shared();
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericStub> stub_;
  // Null: Connect has not begun.
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  // Of the read that is pending.
  grpc::ByteBuffer incoming_;
  // As gRPC names the server. Set before the stream is open.
  std::string peer_;
  // The poller's thread's.
  grpc::Status finish_status_;
  bool finishing_ = false;
  bool server_is_known_ = false;  // Whether its initial metadata has been looked at.

  Mutex mu_;
  CondVar changed_;
  // kEnded: no event is to come, and the handler has been told what it is to be told.
  enum class State { kConnecting, kOpen, kEnding, kEnded };
  State state_ ABSL_GUARDED_BY(mu_) = State::kConnecting;
  // Whether there ever was a connection, so that its end is to be told.
  bool was_open_ ABSL_GUARDED_BY(mu_) = false;
  bool shutting_down_ ABSL_GUARDED_BY(mu_) = false;
  // Operations whose events are to come. Each is counted before it is started.
  int pending_ ABSL_GUARDED_BY(mu_) = 0;
  SendQueue out_ ABSL_GUARDED_BY(mu_);
  // For the write that was started last.
  SendAhead send_ahead_ ABSL_GUARDED_BY(mu_) = SendAhead::kMessage;
  // Messages that were taken to be sent, and have no answer yet.
  size_t unanswered_ ABSL_GUARDED_BY(mu_) = 0;
  // No read is pending: the next write or the timer, which is set, begins one.
  bool read_due_ ABSL_GUARDED_BY(mu_) = false;
  bool read_timer_set_ ABSL_GUARDED_BY(mu_) = false;
  grpc::Alarm read_timer_ ABSL_GUARDED_BY(mu_);
  // Why the stream ends. OK until then.
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_EXCHANGE_CLIENT_H_
