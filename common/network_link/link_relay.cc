#include "common/network_link/link_relay.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
namespace {

// Read at once.
constexpr size_t kReadBytes = size_t{64} << 10;
// Of one direction of a connection, in flight. More is not read: the sender notices, as behind a slow link.
constexpr size_t kOnTheWayMax = size_t{4} << 20;

absl::Status NoSocket(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("a slow network link: ", what, ": ", std::strerror(errno)));
}

int NewSocket(int family) { return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

void SendAtOnce(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Of "host:port", as the system writes addresses.
absl::StatusOr<std::vector<char>> Resolve(const std::string& target) {
  const size_t colon = target.rfind(':');
  const auto bad = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("\"", target, "\": ", why, "; allowed: host:port"));
  };
  if (colon == std::string::npos) return bad("no port");
  std::string host = target.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), target.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) return bad(gai_strerror(error));
  const auto* bytes = reinterpret_cast<const char*>(found->ai_addr);
  std::vector<char> address(bytes, bytes + found->ai_addrlen);
  freeaddrinfo(found);
  return address;
}

// A listening socket on a port that is free; `address` becomes "127.0.0.1:port".
absl::StatusOr<int> Listen(std::string* address) {
  const int listener = NewSocket(AF_INET);
  if (listener < 0) return NoSocket("socket");
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(own);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&own), size) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    const absl::Status status = NoSocket("listen");
    close(listener);
    return status;
  }
  *address = absl::StrCat("127.0.0.1:", ntohs(own.sin_port));
  return listener;
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

absl::StatusOr<std::unique_ptr<LinkRelay>> LinkRelay::Create(const LinkModel& link, const Clock* clock) {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return NoSocket("pipe");
  return std::unique_ptr<LinkRelay>(new LinkRelay(link, clock, ends[0], ends[1]));
}

LinkRelay::LinkRelay(const LinkModel& link, const Clock* clock, int wake_read, int wake_write)
    : link_(link),
      clock_(clock),
      wake_read_(wake_read),
      wake_write_(wake_write),
      up_(link),
      down_(link),
      buffer_(kReadBytes),
      thread_([this] { Run(); }) {}

LinkRelay::~LinkRelay() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  // Full: it is awake.
  (void)!write(wake_write_, "", 1);
  thread_.join();
  for (Connection& connection : connections_) Close(&connection);
  MutexLock lock(mu_);
  for (const auto& [name, target] : targets_) close(target.listener);
  close(wake_read_);
  close(wake_write_);
}

absl::StatusOr<std::string> LinkRelay::AddressFor(const std::string& name) {
  MutexLock lock(mu_);
  if (const auto known = targets_.find(name); known != targets_.end()) return known->second.address;
  Target target;
  RUBATO_ASSIGN_OR_RETURN(target.socket_address, Resolve(name));
  RUBATO_ASSIGN_OR_RETURN(target.listener, Listen(&target.address));
  const std::string address = target.address;
  targets_.emplace(name, std::move(target));
  (void)!write(wake_write_, "", 1);
  return address;
}

void LinkRelay::Run() {
  for (;;) {
    Poll();
    MutexLock lock(mu_);
    if (stop_) return;
    for (const auto& [name, target] : targets_) Accept(target);
    const absl::Time now = clock_->Now();
    for (auto connection = connections_.begin(); connection != connections_.end();) {
      Move(&*connection, now);
      const bool done = connection->broken || (connection->up.closed && connection->down.closed);
      if (done) Close(&*connection);
      connection = done ? connections_.erase(connection) : std::next(connection);
    }
  }
}

void LinkRelay::Poll() {
  std::vector<pollfd> sockets = {{wake_read_, POLLIN, 0}};
  {
    MutexLock lock(mu_);
    for (const auto& [name, target] : targets_) sockets.push_back({target.listener, POLLIN, 0});
  }
  const absl::Time now = clock_->Now();
  absl::Time next = absl::InfiniteFuture();
  for (const Connection& connection : connections_) {
    if (connection.connecting) {
      sockets.push_back({connection.far, POLLOUT, 0});
      continue;
    }
    for (const Direction* direction : {&connection.up, &connection.down}) {
      if (!direction->ended && direction->bytes < kOnTheWayMax) sockets.push_back({direction->from, POLLIN, 0});
      if (direction->pieces.empty()) continue;
      if (direction->pieces.front().arrives > now) {
        next = std::min(next, direction->pieces.front().arrives);
      } else {
        sockets.push_back({direction->to, POLLOUT, 0});
      }
    }
  }
  timespec timeout = absl::ToTimespec(std::max(next - now, absl::ZeroDuration()));
  ppoll(sockets.data(), sockets.size(), next == absl::InfiniteFuture() ? nullptr : &timeout, nullptr);
  char woken[64];
  while (read(wake_read_, woken, sizeof(woken)) > 0) {
  }
}

void LinkRelay::Accept(const Target& target) {
  for (;;) {
    const int near = accept4(target.listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (near < 0) return;
    const auto* address = reinterpret_cast<const sockaddr*>(target.socket_address.data());
    const int far = NewSocket(address->sa_family);
    const bool failed = far < 0 || (connect(far, address, static_cast<socklen_t>(target.socket_address.size())) != 0 &&
                                    errno != EINPROGRESS);
    if (failed) {
      close(near);
      if (far >= 0) close(far);
      continue;
    }
    SendAtOnce(near);
    SendAtOnce(far);
    Connection& connection = connections_.emplace_back();
    connection.near = near;
    connection.far = far;
    connection.up.from = connection.down.to = near;
    connection.up.to = connection.down.from = far;
    connection.up.shaper = &up_;
    connection.down.shaper = &down_;
  }
}

void LinkRelay::Move(Connection* connection, absl::Time now) {
  if (connection->connecting) {
    pollfd socket = {connection->far, POLLOUT, 0};
    if (poll(&socket, 1, 0) == 0) return;
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(connection->far, SOL_SOCKET, SO_ERROR, &error, &size);
    connection->broken = error != 0;
    connection->connecting = false;
  }
  for (Direction* direction : {&connection->up, &connection->down}) {
    if (!connection->broken) Read(direction, now, connection);
    if (!connection->broken) Write(direction, now, connection);
  }
}

void LinkRelay::Read(Direction* direction, absl::Time now, Connection* connection) {
  while (!direction->ended && direction->bytes < kOnTheWayMax) {
    const ssize_t count = read(direction->from, buffer_.data(), buffer_.size());
    if (count < 0 && WouldBlock()) return;
    connection->broken = count < 0;
    direction->ended = count <= 0;
    if (count <= 0) return;
    Piece piece = {direction->shaper->Send(count, now), {buffer_.begin(), buffer_.begin() + count}};
    direction->bytes += static_cast<size_t>(count);
    direction->pieces.push_back(std::move(piece));
  }
}

void LinkRelay::Write(Direction* direction, absl::Time now, Connection* connection) {
  while (!direction->pieces.empty() && direction->pieces.front().arrives <= now) {
    Piece& piece = direction->pieces.front();
    const ssize_t count =
        send(direction->to, piece.bytes.data() + piece.written, piece.bytes.size() - piece.written, MSG_NOSIGNAL);
    if (count < 0 && WouldBlock()) return;
    if (count < 0) {
      connection->broken = true;
      return;
    }
    piece.written += static_cast<size_t>(count);
    direction->bytes -= static_cast<size_t>(count);
    if (piece.written == piece.bytes.size()) direction->pieces.pop_front();
  }
  if (!direction->ended || !direction->pieces.empty() || direction->closed) return;
  shutdown(direction->to, SHUT_WR);
  direction->closed = true;
}

void LinkRelay::Close(Connection* connection) {
  close(connection->near);
  close(connection->far);
}

}  // namespace rubato
