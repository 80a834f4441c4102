#ifndef RUBATO_COMMON_SHARED_MEMORY_UNIX_SOCKET_H_
#define RUBATO_COMMON_SHARED_MEMORY_UNIX_SOCKET_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/file_descriptor.h"

namespace rubato {

// Unix sockets that carry packets (SOCK_SEQPACKET) with open files, under abstract names: these are in no file system
// and are free again when their process ends. They are known within one network namespace. All functions are
// thread-safe; every descriptor made here is closed on exec, and no call raises SIGPIPE.

// The most bytes of an abstract name, and of a packet that ReceivePacket takes.
inline constexpr size_t kAbstractNameBytesMax = 107;
inline constexpr size_t kPacketBytesMax = 1024;

struct Packet {
  std::string bytes;
  std::vector<FileDescriptor> descriptors;
};

// A non-blocking socket that listens. InvalidArgument: the name is empty or too long. AlreadyExists: it is taken.
absl::StatusOr<FileDescriptor> ListenAbstract(absl::string_view name);

// The next connection, non-blocking. OutOfRange: none waits. ResourceExhausted: no memory or too many open files.
absl::StatusOr<FileDescriptor> AcceptPeer(const FileDescriptor& listening);

// A blocking socket whose waits, this one and later ones, are `timeout` each. InvalidArgument: the name is empty or too
// long, or the timeout is not positive. Unavailable: nobody listens there. DeadlineExceeded: too many wait already.
absl::StatusOr<FileDescriptor> ConnectAbstract(absl::string_view name, absl::Duration timeout);

// OK when the process at the other end is of this process's (effective) user; PermissionDenied otherwise. It speaks of
// who connected, or who listened, and holds for the life of the connection.
absl::Status CheckPeerUser(const FileDescriptor& socket);

// The process at the other end, as "process 123", for people.
std::string DescribePeer(const FileDescriptor& socket);

// Sends one packet, with an open file unless `descriptor` is -1. Never waits on a non-blocking socket. Unavailable: the
// peer is gone. DeadlineExceeded: it does not read what it was sent.
absl::Status SendPacket(const FileDescriptor& socket, absl::string_view bytes, int descriptor);

// One packet. OutOfRange: none came (within the socket's timeout). Unavailable: the peer is gone. InvalidArgument: the
// packet is longer than kPacketBytesMax, or descriptors that came with it were lost. What comes with a bad packet is
// closed.
absl::StatusOr<Packet> ReceivePacket(const FileDescriptor& socket);

}  // namespace rubato

#endif  // RUBATO_COMMON_SHARED_MEMORY_UNIX_SOCKET_H_
