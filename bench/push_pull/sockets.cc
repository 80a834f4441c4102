#include "bench/push_pull/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato::bench {
namespace {

absl::Status Tune(const Setup& setup, int descriptor) {
  if (const int bytes = setup.socket_buffer_bytes; bytes > 0) {
    if (setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) != 0) return SystemError("SO_SNDBUF");
    if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)) != 0) return SystemError("SO_RCVBUF");
  }
  if (setup.unix_socket) return absl::OkStatus();
  const int one = 1;
  if (setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0) return SystemError("TCP_NODELAY");
  if (setup.congestion == "system") return absl::OkStatus();
  if (setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, setup.congestion.data(), setup.congestion.size()) != 0) {
    return SystemError(absl::StrCat("congestion: ", setup.congestion));
  }
  return absl::OkStatus();
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Of the abstract namespace, named after the process that listens.
sockaddr_un Abstract(int process, socklen_t* size) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = absl::StrCat("rubato-bench-", process);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  *size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  return address;
}

absl::StatusOr<int> Listen(const Setup& setup, std::string* where) {
  const int descriptor = socket(setup.unix_socket ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return SystemError("socket");
  sockaddr_in ip = Loopback(0);
  socklen_t size = sizeof(ip);
  sockaddr_un local = Abstract(getpid(), &size);
  int bound = 0;
  if (setup.unix_socket) {
    bound = bind(descriptor, reinterpret_cast<sockaddr*>(&local), size);
    *where = absl::StrCat(getpid());
  } else {
    size = sizeof(ip);
    bound = bind(descriptor, reinterpret_cast<sockaddr*>(&ip), size);
    getsockname(descriptor, reinterpret_cast<sockaddr*>(&ip), &size);
    *where = absl::StrCat(ntohs(ip.sin_port));
  }
  if (bound != 0 || listen(descriptor, 1) != 0) return SystemError("listen");
  return descriptor;
}

}  // namespace

absl::Status SystemError(const std::string& what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<int> AcceptOne(const Setup& setup, const Ready& ready) {
  std::string where;
  RUBATO_ASSIGN_OR_RETURN(const int listener, Listen(setup, &where));
  ready(where);
  const int descriptor = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  close(listener);
  if (descriptor < 0) return SystemError("accept");
  RUBATO_RETURN_IF_ERROR(Tune(setup, descriptor));
  return descriptor;
}

absl::StatusOr<int> ConnectTo(const Setup& setup, const std::string& address) {
  int where = 0;
  if (!absl::SimpleAtoi(address, &where)) {
    return absl::InvalidArgumentError(absl::StrCat("address: \"", address, "\" is not a number"));
  }
  const int descriptor = socket(setup.unix_socket ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return SystemError("socket");
  RUBATO_RETURN_IF_ERROR(Tune(setup, descriptor));
  int connected = 0;
  if (setup.unix_socket) {
    socklen_t size = 0;
    const sockaddr_un local = Abstract(where, &size);
    connected = connect(descriptor, reinterpret_cast<const sockaddr*>(&local), size);
  } else {
    const sockaddr_in ip = Loopback(where);
    connected = connect(descriptor, reinterpret_cast<const sockaddr*>(&ip), sizeof(ip));
  }
  if (connected != 0) return SystemError(absl::StrCat("connect to ", address));
  return descriptor;
}

absl::Status SetNonBlocking(int descriptor) {
  if (fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) != 0) return SystemError("O_NONBLOCK");
  return absl::OkStatus();
}

}  // namespace rubato::bench
