#ifndef RUBATO_COMMON_TRANSPORT_LOOPBACK_H_
#define RUBATO_COMMON_TRANSPORT_LOOPBACK_H_

#include <grpcpp/support/channel_arguments.h>

#include <string>

namespace rubato {

// Connections that a channel to "host:port" will make are not paced (docs/decisions/0043) if that is a loopback
// address; does nothing elsewhere.
void TuneLoopbackChannel(const std::string& address, grpc::ChannelArguments* arguments);

// Makes this process's connections to `peer`, as gRPC names it ("ipv4:127.0.0.1:7000"), fast if that is a loopback
// address; does nothing elsewhere. Buffers that grow beyond the cache halve what loopback carries, and so does the
// pacing of connections that were made without TuneLoopbackChannel or came to a port on all addresses. gRPC does not
// show sockets that are connected, hence they are looked for among the process's descriptors. What the system does not
// allow is left as it is. Thread-safe.
void TuneLoopbackSockets(const std::string& peer);

// How much of what a client sends the system takes before the server reads it.
enum class SendAhead {
  // A whole message, so that its sender can turn to something else. As TuneLoopbackSockets leaves it.
  kMessage,
  // Little, so that all of it is read while it is in the caches. The sender is woken more often.
  kLittle,
};

// Of this process's connections to `peer`, if that is a loopback address; does nothing elsewhere. Looks at all of the
// process's descriptors, so it is for changes that are seldom. Thread-safe.
void SetLoopbackSendAhead(const std::string& peer, SendAhead ahead);

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_LOOPBACK_H_
