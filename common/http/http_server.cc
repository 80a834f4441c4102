#include "common/http/http_server.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
namespace {

struct Address {
  std::string host;
  std::string port;
};

absl::StatusOr<Address> SplitAddress(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(listen.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", listen, "\" is not \"host:port\" with a port from 0 to 65535"));
  }
  Address address = {listen.substr(0, colon), listen.substr(colon + 1)};
  if (address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  return address;
}

absl::Status CannotListen(const std::string& listen, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", listen, ": ", why, "; port 0 takes a free one"));
}

int PortOf(int socket) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                                          : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
}

// Binds to one of the addresses that a name stands for. Not open, with errno: none could be had.
FileDescriptor BindAndListen(const addrinfo& address) {
  FileDescriptor bound(
      socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (!bound.open()) return bound;
  // A port that was in use a moment ago may be taken again; one that is in use may not.
  const int on = 1;
  setsockopt(bound.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(bound.get(), address.ai_addr, address.ai_addrlen) == 0 && listen(bound.get(), SOMAXCONN) == 0) return bound;
  const int error = errno;
  bound.Close();
  errno = error;
  return bound;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Create(Options options) {
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(options)));
  RUBATO_RETURN_IF_ERROR(server->Listen());
  server->thread_ = std::thread([self = server.get()] { self->Run(); });
  return server;
}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

absl::Status HttpServer::Listen() {
  RUBATO_ASSIGN_OR_RETURN(const Address address, SplitAddress(options_.listen));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found); error != 0) {
    return CannotListen(options_.listen, gai_strerror(error));
  }
  for (const addrinfo* next = found; next != nullptr && !socket_.open(); next = next->ai_next) {
    socket_ = BindAndListen(*next);
  }
  const int error = errno;
  freeaddrinfo(found);
  if (!socket_.open()) {
    return CannotListen(options_.listen,
                        error == EADDRINUSE ? "the port is taken by another process" : strerror(error));
  }
  port_ = PortOf(socket_.get());
  stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_.open()) return CannotListen(options_.listen, strerror(errno));
  return absl::OkStatus();
}

void HttpServer::Run() {
  for (;;) {
    const bool full = connections_.size() >= options_.max_connections;
    std::vector<pollfd> events = {{stop_.get(), POLLIN, 0}, {full ? -1 : socket_.get(), POLLIN, 0}};
    absl::Duration left = absl::InfiniteDuration();
    for (const Connection& connection : connections_) {
      const short wanted = connection.answered ? POLLOUT : POLLIN;
      events.push_back({connection.socket.get(), wanted, 0});
      left = std::min(left, connection.deadline - options_.clock->Now());
    }
    int timeout = -1;
    if (left != absl::InfiniteDuration()) {
      timeout = static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(left) + 1));
    }
    if (poll(events.data(), events.size(), timeout) < 0 && errno != EINTR) return;
    if (events[0].revents != 0) return;
    const absl::Time now = options_.clock->Now();
    size_t event = 2;
    for (auto connection = connections_.begin(); connection != connections_.end(); ++event) {
      const bool goes_on = now < connection->deadline && (events[event].revents == 0 || Serve(&*connection));
      connection = goes_on ? std::next(connection) : connections_.erase(connection);
    }
    if (events[1].revents != 0) Accept();
  }
}

void HttpServer::Accept() {
  FileDescriptor socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  // It may have gone again.
  if (!socket.open()) return;
  connections_.emplace_back();
  connections_.back().socket = std::move(socket);
  connections_.back().deadline = options_.clock->Now() + options_.timeout;
}

bool HttpServer::Serve(Connection* connection) {
  if (!connection->answered && !Read(connection)) return false;
  while (!connection->answer.empty()) {
    const ssize_t sent =
        send(connection->socket.get(), connection->answer.data(), connection->answer.size(), MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    connection->answer.erase(0, static_cast<size_t>(sent));
  }
  return !connection->answered;
}

bool HttpServer::Read(Connection* connection) {
  char bytes[4096];
  const ssize_t size = recv(connection->socket.get(), bytes, sizeof(bytes), 0);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) return false;
  connection->received.append(bytes, static_cast<size_t>(size));
  std::optional<HttpRequest> request = ParseHttpRequest(connection->received);
  if (!request.has_value()) return true;
  HttpReply reply;
  if (request->error == 0) {
    request->port = port_;
    reply = options_.handler(*request);
  } else {
    reply.status = request->error;
    reply.body = absl::StrCat("HTTP status ", request->error, "; GET and HEAD of HTTP/1 are served here\n");
  }
  connection->answer = FormatHttpReply(reply, request->head_only);
  connection->answered = true;
  return true;
}

}  // namespace rubato
