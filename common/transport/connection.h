#ifndef RUBATO_COMMON_TRANSPORT_CONNECTION_H_
#define RUBATO_COMMON_TRANSPORT_CONNECTION_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/security/identity.h"

namespace rubato {

// A client's stream, as the server sees it. Thread-safe, never blocks on the network. May outlive the server that made
// it, and then does nothing.
class Connection {
 public:
  virtual ~Connection() = default;

  // Unique within the server.
  virtual uint64_t id() const = 0;
  // The client's address, for people.
  virtual const std::string& peer() const = 0;
  // Who it is by the certificate that the connection was made with; nullopt: it was made with none.
  virtual const std::optional<Identity>& identity() const = 0;

  // Queues a message, ahead of those that wait with a higher priority number. After the end of the connection it is
  // silently dropped. When more bytes wait than the server's options allow, the connection is closed with
  // RESOURCE_EXHAUSTED. Some of the work of sending is done here, and the memory of messages may be released here.
  // (Messages are handed on by reference: gRPC's buffers have no move, and a parameter by value would be a copy.)
  virtual void Send(grpc::ByteBuffer&& message, int64_t priority) = 0;

  // The handler has no more use for a message of so many bytes that came on it. Until then they count towards the bound
  // on what a client may have unanswered.
  virtual void Release(size_t /*bytes*/) {}

  // Ends the stream. With OK what is queued is sent first; with another status the client is told that status at once,
  // what is queued is dropped, and the message being sent may be cut off. No message is delivered afterwards. Does
  // nothing when the stream has ended.
  virtual void Close(absl::Status status) = 0;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_CONNECTION_H_
