#include "common/transport/testing/peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace rubato {

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return "(no buffer)";
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

void EchoHandler::OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&& message) {
  if (echo_) connection->Send(std::move(message), 0);
  MutexLock lock(mu_);
  connection_ = std::move(connection);
  ++messages_;
  changed_.NotifyAll();
}

void EchoHandler::OnClosed(uint64_t connection_id) {
  MutexLock lock(mu_);
  closed_.insert(connection_id);
  changed_.NotifyAll();
}

bool EchoHandler::AwaitMessages(int count) {
  MutexLock lock(mu_);
  return Await(mu_, changed_, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return messages_ >= count; });
}

bool EchoHandler::AwaitClosed(int count) {
  MutexLock lock(mu_);
  return Await(mu_, changed_,
               [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return closed_.size() >= static_cast<size_t>(count); });
}

std::shared_ptr<Connection> EchoHandler::connection() {
  MutexLock lock(mu_);
  return connection_;
}

void Inbox::OnMessages(std::vector<grpc::ByteBuffer> messages) {
  std::vector<std::string> bytes;
  for (const grpc::ByteBuffer& message : messages) bytes.push_back(ToString(message));
  MutexLock lock(mu_);
  messages_.insert(messages_.end(), bytes.begin(), bytes.end());
  changed_.NotifyAll();
}

void Inbox::OnDisconnected(absl::Status status) {
  MutexLock lock(mu_);
  status_ = std::move(status);
  changed_.NotifyAll();
}

bool Inbox::AwaitCount(size_t count) {
  MutexLock lock(mu_);
  return Await(mu_, changed_, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return messages_.size() >= count; });
}

std::vector<std::string> Inbox::AwaitMessages(size_t count) {
  AwaitCount(count);
  MutexLock lock(mu_);
  return messages_;
}

absl::Status Inbox::AwaitDisconnected() {
  MutexLock lock(mu_);
  Await(mu_, changed_, [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !status_.ok(); });
  return status_;
}

namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Passes on what is there. Returns false at the end.
bool Pump(int from, int to) {
  char bytes[4096];
  const ssize_t got = read(from, bytes, sizeof(bytes));
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t n = write(to, bytes + sent, static_cast<size_t>(got - sent));
    if (n <= 0) return false;
    sent += n;
  }
  return got > 0;
}

}  // namespace

Relay::Relay(int server_port) {
  listener_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  const bool ready = bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(listener_, 1) == 0 &&
                     getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0 && pipe(stop_) == 0;
  if (!ready) return;  // The test then cannot connect.
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this, server_port] { Run(server_port); });
}

Relay::~Relay() {
  if (thread_.joinable()) {
    if (write(stop_[1], "x", 1) != 1) close(stop_[1]);
    thread_.join();
  }
  for (const int fd : {listener_, stop_[0], stop_[1]}) close(fd);
}

void Relay::Run(int server_port) {
  const int client = accept(listener_, nullptr, nullptr);
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = Loopback(server_port);
  bool open = connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  while (open) {
    pollfd fds[3] = {{stop_[0], POLLIN, 0}, {client, POLLIN, 0}, {server, POLLIN, 0}};
    // Once cut, only the end of the test is waited for.
    if (poll(fds, cut_ ? 1 : 3, 100) < 0 || fds[0].revents != 0) break;
    if (!cut_ && fds[1].revents != 0) open = Pump(client, server);
    if (!cut_ && open && fds[2].revents != 0) open = Pump(server, client);
  }
  close(client);
  close(server);
}

}  // namespace rubato
