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

#include "absl/strings/str_cat.h"
#include "common/http/listen_address.h"
#include "common/sockets.h"
#include "common/status.h"

namespace rubato {
namespace {

// Without descriptors, until they are asked for again.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

// As far as it can be sent at once.
void SendReply(const FileDescriptor& socket, int status, absl::string_view why) {
  const std::string text = FormatHttpReply({.status = status, .body = absl::StrCat(why, "\n")}, /*head_only=*/false);
  (void)send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

absl::Status CannotListen(const std::string& listen, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("cannot listen on ", listen, ": ", why, "; port 0 takes a free one"));
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
  RUBATO_ASSIGN_OR_RETURN(const ListenAddress address, ParseListenAddress(options_.listen));
  const std::string port = absl::StrCat(address.port);
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found); error != 0) {
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
  wake_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_.open() || !wake_.open()) return CannotListen(options_.listen, strerror(errno));
  return absl::OkStatus();
}

void HttpServer::Publish(std::string message) {
  {
    MutexLock lock(mu_);
    published_.push_back(std::make_shared<const std::string>(std::move(message)));
  }
  eventfd_write(wake_.get(), 1);
}

size_t HttpServer::CountStreams() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [](const Connection& connection) { return connection.stream; }));
}

void HttpServer::Run() {
  std::vector<short> events;
  while (Await(&events)) {
    const absl::Time now = options_.clock->Now();
    size_t event = 2;
    for (auto connection = connections_.begin(); connection != connections_.end(); ++event) {
      const bool goes_on = InTime(&*connection, now) && (events[event] == 0 || Serve(&*connection));
      connection = goes_on ? std::next(connection) : connections_.erase(connection);
    }
    // After the clients that begin a stream now: they were told of nothing that is published from here on.
    if (events[1] != 0) SendPublished();
    if (events[0] != 0) Accept();
  }
  // As far as it can be sent at once.
  SendPublished();
}

bool HttpServer::InTime(Connection* connection, absl::Time now) {
  if (now >= connection->deadline) return false;
  if (connection->answered || now < connection->request_deadline) return true;
  if (!connection->received.empty()) {
    SendReply(connection->socket, 408,
              absl::StrCat("the request did not come within ", absl::FormatDuration(options_.request_timeout)));
  }
  return false;
}

bool HttpServer::Await(std::vector<short>* events) {
  const absl::Time now = options_.clock->Now();
  const bool full = connections_.size() - CountStreams() >= options_.max_connections;
  const bool pauses = now < accept_again_;
  std::vector<pollfd> waits = {
      {stop_.get(), POLLIN, 0}, {full || pauses ? -1 : socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  absl::Duration left = pauses ? accept_again_ - now : absl::InfiniteDuration();
  for (const Connection& connection : connections_) {
    // A client of a stream says nothing any more, but that it leaves.
    short wanted = connection.answered && !connection.stream ? 0 : POLLIN;
    if (!connection.answer.empty()) wanted = static_cast<short>(wanted | POLLOUT);
    waits.push_back({connection.socket.get(), wanted, 0});
    left = std::min(
        left,
        (connection.answered ? connection.deadline : std::min(connection.deadline, connection.request_deadline)) - now);
  }
  int timeout = -1;
  if (left != absl::InfiniteDuration()) {
    timeout = static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(left) + 1));
  }
  if (poll(waits.data(), waits.size(), timeout) < 0 && errno != EINTR) return false;
  events->clear();
  for (size_t i = 1; i < waits.size(); ++i) events->push_back(waits[i].revents);
  return waits[0].revents == 0;
}

void HttpServer::Accept() {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  FileDescriptor socket(
      accept4(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.open()) {
    // Otherwise it may have gone again.
    if (IsOutOfDescriptors(errno)) accept_again_ = options_.clock->Now() + kAcceptPause;
    return;
  }
  if (socket.get() >= FirstSparedDescriptor(options_.spare_descriptors)) {
    return SendReply(socket, 503, "this process has no descriptors to spare");
  }
  connections_.emplace_back();
  connections_.back().socket = std::move(socket);
  connections_.back().peer = HostOf(name, size);
  const absl::Time now = options_.clock->Now();
  connections_.back().deadline = now + options_.timeout;
  connections_.back().request_deadline = now + options_.request_timeout;
}

void HttpServer::SendPublished() {
  eventfd_t count = 0;
  eventfd_read(wake_.get(), &count);
  std::vector<std::shared_ptr<const std::string>> messages;
  {
    MutexLock lock(mu_);
    messages.swap(published_);
  }
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    bool goes_on = true;
    if (connection->stream) {
      connection->answer.insert(connection->answer.end(), messages.begin(), messages.end());
      goes_on = Send(&*connection) && connection->answer.size() <= options_.max_behind;
    }
    connection = goes_on ? std::next(connection) : connections_.erase(connection);
  }
}

bool HttpServer::Serve(Connection* connection) {
  if (connection->stream) {
    char bytes[512];
    const ssize_t size = recv(connection->socket.get(), bytes, sizeof(bytes), 0);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) return false;
  } else if (!connection->answered && !Read(connection)) {
    return false;
  }
  if (!Send(connection)) return false;
  return connection->stream || !connection->answered || !connection->answer.empty();
}

bool HttpServer::Send(Connection* connection) {
  while (!connection->answer.empty()) {
    const std::string& next = *connection->answer.front();
    const ssize_t sent =
        send(connection->socket.get(), next.data() + connection->sent, next.size() - connection->sent, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    connection->sent += static_cast<size_t>(sent);
    if (connection->sent < next.size()) continue;
    connection->answer.pop_front();
    connection->sent = 0;
  }
  return true;
}

HttpReply HttpServer::AnswerOf(const HttpRequest& request) const {
  if (request.error != 0) {
    return {.status = request.error,
            .body = absl::StrCat(
                "HTTP status ", request.error, "; GET and HEAD of HTTP/1 are served here",
                options_.max_body > 0 ? absl::StrCat(", and POST of up to ", options_.max_body, " bytes") : "", "\n")};
  }
  HttpReply reply = options_.handler(request);
  if (!reply.stream || CountStreams() < options_.max_streams) return reply;
  return {.status = 503, .body = absl::StrCat(options_.max_streams, " clients watch already\n")};
}

bool HttpServer::Read(Connection* connection) {
  char bytes[4096];
  const ssize_t size = recv(connection->socket.get(), bytes, sizeof(bytes), 0);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) return false;
  connection->received.append(bytes, static_cast<size_t>(size));
  std::optional<HttpRequest> request = ParseHttpRequest(connection->received, options_.max_body);
  if (!request.has_value()) return true;
  request->port = port_;
  request->peer = connection->peer;
  const HttpReply reply = AnswerOf(*request);
  connection->answer.push_back(std::make_shared<const std::string>(FormatHttpReply(reply, request->head_only)));
  connection->answered = true;
  connection->stream = reply.stream && !request->head_only;
  if (connection->stream) connection->deadline = absl::InfiniteFuture();
  return true;
}

}  // namespace rubato
