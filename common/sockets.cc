#include "common/sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "absl/strings/strip.h"

namespace rubato {

int PortOf(int socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
}

std::string HostOf(const sockaddr_storage& name, socklen_t size) {
  char host[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&name), size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return std::string(absl::StripPrefix(host, "::ffff:"));
}

void SendUnpaced(int socket) {
  constexpr char kReno[] = "reno";  // The one that every Linux has and lets everybody take.
  setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kReno, sizeof(kReno) - 1);
}

bool IsOutOfDescriptors(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

int FirstSparedDescriptor(size_t spare) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return INT_MAX;
  const rlim_t most = std::min<rlim_t>(limit.rlim_cur, INT_MAX);
  return static_cast<int>(most - std::min<rlim_t>(spare, most / 4));
}

}  // namespace rubato
