#ifndef RUBATO_COMMON_TRANSPORT_SERVER_STREAM_H_
#define RUBATO_COMMON_TRANSPORT_SERVER_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/limits/port_limits.h"
#include "common/limits/refusal_log.h"
#include "common/mutex.h"
#include "common/security/identity.h"
#include "common/transport/connection.h"
#include "common/transport/poller.h"
#include "common/transport/send_queue.h"
#include "proto/parameter_server.grpc.pb.h"

namespace rubato {

using RawExchangeService = v1::ParameterServer::WithRawMethod_Exchange<v1::ParameterServer::Service>;

// Whoever is given the messages of a server's connections. Called on the poller's thread, which must not be blocked.
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;

  // One message. Each is to be answered by one Send: a client that says that it sends no more is told the end of the
  // stream once it has as many answers.
  virtual void OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&& message) = 0;

  // The connection has ended, for whatever reason; its last call. Comes once for every connection, also for one that
  // never sent a message.
  virtual void OnClosed(uint64_t connection_id) = 0;
};

// One Exchange call on a completion queue: its gRPC objects, and what waits to be sent on it. Connection's methods are
// thread-safe; the others are the poller's thread's.
class ServerStream : public Connection, public std::enable_shared_from_this<ServerStream> {
 public:
  enum class Operation { kAccept, kRead, kWrite, kFinish, kDone };

  // The server that the stream is of: is given the queue's events, and hands them to the stream as long as it has it.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void OnStreamEvent(ServerStream* stream, Operation operation, bool ok) = 0;
  };

  // `refusals`, which may be null, is used as long as the call lasts.
  ServerStream(uint64_t id, const PortLimits& limits, RefusalLog* refusals, Owner* owner, ConnectionHandler* handler);

  // Waits for a call. Then comes a kAccept event and, if that is ok, Begin() is due.
  void Accept(RawExchangeService* service, grpc::ServerCompletionQueue* queue);
  void Begin();
  // Takes an event other than kAccept. Returns true when it was the last one: the handler has been told, and the stream
  // may be forgotten.
  bool OnEvent(Operation operation, bool ok);
  // Says that the peer asks for too much of `kind`, and ends its stream with `why`.
  void Refuse(absl::string_view kind, const absl::Status& why);

  uint64_t id() const override { return id_; }
  const std::string& peer() const override { return peer_; }
  const std::optional<Identity>& identity() const override { return identity_; }
  void Send(grpc::ByteBuffer&& message, int64_t priority) override;
  void Release(size_t bytes) override;
  void Close(absl::Status status) override;

 private:
  class OperationEvent final : public Poller::Event {
   public:
    OperationEvent(ServerStream* stream, Operation operation) : stream_(stream), operation_(operation) {}
    void OnEvent(bool ok) override { stream_->owner_->OnStreamEvent(stream_, operation_, ok); }

   private:
    ServerStream* const stream_;
    const Operation operation_;
  };

  // Released when the call is over, whoever still holds the connection.
  struct Call {
    grpc::ServerContext context;
    grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream{&context};
  };

  void OnRead(bool ok);
  // Asks for the next message, unless nothing is taken any more.
  void BeginRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Deliver(std::vector<grpc::ByteBuffer> messages);
  // Whether what is unanswered is within the limits. ResourceExhausted: it is not; the message has the bound.
  absl::Status CheckUnanswered() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(absl::string_view kind, absl::string_view why) const;
  // Says it of a call that is over, if nothing of it could be read.
  void NoteUnheard(const Call& call);
  // Starts the next write, or ends the stream when that is due.
  void Advance();
  bool StreamIsOver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t id_;
  const size_t message_bytes_most_;
  const size_t unanswered_most_;
  const size_t unanswered_bytes_most_;
  RefusalLog* const refusals_;
  Owner* const owner_;
  ConnectionHandler* const handler_;
  OperationEvent accept_event_{this, Operation::kAccept};
  OperationEvent read_event_{this, Operation::kRead};
  OperationEvent write_event_{this, Operation::kWrite};
  OperationEvent finish_event_{this, Operation::kFinish};
  OperationEvent done_event_{this, Operation::kDone};
  // Constant from Begin() on.
  std::string peer_;
  std::optional<Identity> identity_;
  grpc::ByteBuffer incoming_;  // The poller's thread's.

  Mutex mu_;
  // Not null while pending_ > 0.
  std::unique_ptr<Call> call_;
  SendQueue queue_ ABSL_GUARDED_BY(mu_);
  // Operations whose events are to come. Each is counted before it is started.
  int pending_ ABSL_GUARDED_BY(mu_) = 0;
  // Close(OK) was called: nothing is taken any more, the rest is sent.
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  // Nothing is sent any more.
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  // By this side, with an error.
  bool refused_ ABSL_GUARDED_BY(mu_) = false;
  // The next read begins when the large answer is written that follows a small one.
  bool read_due_ ABSL_GUARDED_BY(mu_) = false;
  // The client sends no more.
  bool read_ended_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t messages_read_ ABSL_GUARDED_BY(mu_) = 0;
  // Of messages that were read, the bytes that the handler has not released.
  size_t unreleased_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Calls of Send.
  uint64_t answers_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t messages_written_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t messages_in_write_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_SERVER_STREAM_H_
