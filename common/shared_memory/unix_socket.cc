#include "common/shared_memory/unix_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
namespace {

// More than any packet may have, so that a surplus one is seen rather than lost.
constexpr size_t kDescriptorsMax = 4;

struct AbstractAddress {
  sockaddr_un address = {};
  socklen_t bytes = 0;
};

absl::StatusOr<AbstractAddress> MakeAddress(absl::string_view name) {
  static_assert(kAbstractNameBytesMax + 1 == sizeof(sockaddr_un::sun_path));
  if (name.empty() || name.size() > kAbstractNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("socket: a name of ", name.size(), " bytes; 1 to ", kAbstractNameBytesMax, " are allowed"));
  }
  AbstractAddress result;
  result.address.sun_family = AF_UNIX;
  // The leading zero byte says that the name is abstract.
  std::memcpy(result.address.sun_path + 1, name.data(), name.size());
  result.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

absl::StatusOr<FileDescriptor> MakeSocket(int flags) {
  FileDescriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!made.open()) return absl::ErrnoToStatus(errno, "socket");
  return made;
}

absl::Status SetTimeouts(const FileDescriptor& socket, absl::Duration timeout) {
  const timeval wait = absl::ToTimeval(absl::Ceil(timeout, absl::Microseconds(1)));
  for (int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (setsockopt(socket.get(), SOL_SOCKET, option, &wait, sizeof(wait)) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("a socket timeout of ", absl::FormatDuration(timeout)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ucred> PeerCredentials(const FileDescriptor& socket) {
  ucred peer = {};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return absl::ErrnoToStatus(errno, "SO_PEERCRED");
  }
  return peer;
}

bool PeerGone(int error) { return error == EPIPE || error == ECONNRESET || error == ENOTCONN; }

// Takes over every descriptor that came with a message.
std::vector<FileDescriptor> TakeDescriptors(msghdr* message) {
  std::vector<FileDescriptor> taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      taken.emplace_back(descriptor);
    }
  }
  return taken;
}

}  // namespace

absl::StatusOr<FileDescriptor> ListenAbstract(absl::string_view name) {
  RUBATO_ASSIGN_OR_RETURN(const AbstractAddress at, MakeAddress(name));
  RUBATO_ASSIGN_OR_RETURN(FileDescriptor made, MakeSocket(SOCK_NONBLOCK));
  if (bind(made.get(), reinterpret_cast<const sockaddr*>(&at.address), at.bytes) != 0) {
    if (errno == EADDRINUSE) return absl::AlreadyExistsError(absl::StrCat("socket @", name, " is taken"));
    return absl::ErrnoToStatus(errno, absl::StrCat("bind to socket @", name));
  }
  if (listen(made.get(), SOMAXCONN) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("listen on @", name));
  return made;
}

absl::StatusOr<FileDescriptor> AcceptPeer(const FileDescriptor& listening) {
  for (;;) {
    FileDescriptor peer(accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (peer.open()) return peer;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return absl::OutOfRangeError("nobody connects");
    return absl::ErrnoToStatus(errno, "accept");
  }
}

absl::StatusOr<FileDescriptor> ConnectAbstract(absl::string_view name, absl::Duration timeout) {
  if (timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeout: ", absl::FormatDuration(timeout), "; more than 0 is allowed"));
  }
  RUBATO_ASSIGN_OR_RETURN(const AbstractAddress at, MakeAddress(name));
  RUBATO_ASSIGN_OR_RETURN(FileDescriptor made, MakeSocket(0));
  RUBATO_RETURN_IF_ERROR(SetTimeouts(made, timeout));
  int failed = 0;
  do {
    failed = connect(made.get(), reinterpret_cast<const sockaddr*>(&at.address), at.bytes);
  } while (failed != 0 && errno == EINTR);
  if (failed == 0) return made;
  const int error = errno;
  if (error == EAGAIN) {
    return absl::DeadlineExceededError(
        absl::StrCat("socket @", name, " took no connection within ", absl::FormatDuration(timeout)));
  }
  return absl::ErrnoToStatus(error, absl::StrCat("connect to socket @", name));
}

absl::Status CheckPeerUser(const FileDescriptor& socket) {
  RUBATO_ASSIGN_OR_RETURN(const ucred peer, PeerCredentials(socket));
  if (peer.uid == geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the peer is of user ", peer.uid, "; only user ", geteuid(), " is allowed"));
}

std::string DescribePeer(const FileDescriptor& socket) {
  const absl::StatusOr<ucred> peer = PeerCredentials(socket);
  return peer.ok() ? absl::StrCat("process ", peer->pid) : "an unknown process";
}

absl::Status SendPacket(const FileDescriptor& socket, absl::string_view bytes, int descriptor) {
  iovec part = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
  }
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return absl::OkStatus();  // A packet goes whole or not at all.
  if (PeerGone(errno)) return absl::UnavailableError("the peer has hung up");
  if (errno == EAGAIN) return absl::DeadlineExceededError("the peer does not read");
  return absl::ErrnoToStatus(errno, "sendmsg");
}

absl::StatusOr<Packet> ReceivePacket(const FileDescriptor& socket) {
  char bytes[kPacketBytesMax];
  iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsMax * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t received = -1;
  do {
    received = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) {
    if (PeerGone(errno)) return absl::UnavailableError("the peer has hung up");
    if (errno == EAGAIN) return absl::OutOfRangeError("the peer has sent nothing");
    return absl::ErrnoToStatus(errno, "recvmsg");
  }
  Packet packet = {.bytes = std::string(bytes, static_cast<size_t>(received)),
                   .descriptors = TakeDescriptors(&message)};
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a packet of more than the ", kPacketBytesMax, " bytes allowed"));
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return absl::InvalidArgumentError("descriptors of a packet were lost: too many came, or too many files are open");
  }
  // An empty packet looks like the end of the connection, and is as little use.
  if (received == 0) return absl::UnavailableError("the peer has hung up");
  return packet;
}

}  // namespace rubato
