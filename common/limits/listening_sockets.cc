#include "common/limits/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/http/listen_address.h"
#include "common/sockets.h"
#include "common/status.h"

namespace rubato {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

absl::Status CannotListen(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", address, ": ", why, "; port 0 takes a free one"));
}

absl::Status CannotListen(const std::string& address, int error) {
  return CannotListen(address, error == EADDRINUSE      ? "the port is taken by another process"
                               : error == EADDRNOTAVAIL ? "the host is not an address of this machine"
                                                        : strerror(error));
}

void SetPort(sockaddr* name, int port) {
  if (name->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(name)->sin6_port = htons(static_cast<uint16_t>(port));
  } else {
    reinterpret_cast<sockaddr_in*>(name)->sin_port = htons(static_cast<uint16_t>(port));
  }
}

// Not open, with errno: it could not be had. `both_families`: of IPv6, and takes IPv4 too. `of_loopback`: nobody else
// can connect.
FileDescriptor Bind(const addrinfo& address, int port, bool both_families, bool of_loopback) {
  FileDescriptor bound(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!bound.open()) return bound;
  const int on = 1;
  const int v6_only = both_families ? 0 : 1;
  // A port that was in use a moment ago may be taken again; one that is in use may not.
  setsockopt(bound.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(bound.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (address.ai_family == AF_INET6) setsockopt(bound.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
  if (of_loopback) SendUnpaced(bound.get());
  SetPort(address.ai_addr, port);
  if (bind(bound.get(), address.ai_addr, address.ai_addrlen) == 0 && listen(bound.get(), SOMAXCONN) == 0) return bound;
  const int error = errno;
  bound.Close();
  errno = error;
  return bound;
}

absl::StatusOr<Addresses> Resolve(const std::string& address, const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return CannotListen(address, gai_strerror(error));
  }
  return Addresses(found, freeaddrinfo);
}

}  // namespace

absl::StatusOr<ListeningSockets> ListenOn(const std::string& address) {
  RUBATO_ASSIGN_OR_RETURN(const ListenAddress parsed, ParseListenAddress(address));
  const bool wildcard = parsed.host == "0.0.0.0" || parsed.host == "::";
  ListeningSockets result;
  result.port = parsed.port;
  if (wildcard) {
    RUBATO_ASSIGN_OR_RETURN(const Addresses any, Resolve(address, "::"));
    FileDescriptor bound = Bind(*any, result.port, /*both_families=*/true, /*of_loopback=*/false);
    // A machine without IPv6 has the other alone.
    if (!bound.open() && errno == EADDRINUSE) return CannotListen(address, EADDRINUSE);
    if (bound.open()) {
      result.port = PortOf(bound.get());
      result.sockets.push_back(std::move(bound));
      return result;
    }
  }
  RUBATO_ASSIGN_OR_RETURN(const Addresses all, Resolve(address, wildcard ? "0.0.0.0" : parsed.host));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* next = all.get(); next != nullptr; next = next->ai_next) {
    FileDescriptor bound = Bind(*next, result.port, /*both_families=*/false, IsLoopback(parsed.host));
    if (!bound.open()) {
      error = errno;
      // Half of a name's addresses would be another task's.
      if (error == EADDRINUSE) break;
      continue;
    }
    result.port = PortOf(bound.get());
    result.sockets.push_back(std::move(bound));
    error = 0;
  }
  if (result.sockets.empty() || error == EADDRINUSE) return CannotListen(address, error);
  return result;
}

}  // namespace rubato
