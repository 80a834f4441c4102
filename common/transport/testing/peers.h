#ifndef RUBATO_COMMON_TRANSPORT_TESTING_PEERS_H_
#define RUBATO_COMMON_TRANSPORT_TESTING_PEERS_H_

#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "common/transport/exchange_client.h"
#include "common/transport/exchange_server.h"

namespace rubato {

grpc::ByteBuffer ToBuffer(const std::string& bytes);
std::string ToString(const grpc::ByteBuffer& buffer);

// Waits up to half a minute for `condition` under `mu`; returns whether it came true.
template <typename Condition>
bool Await(Mutex& mu, CondVar& changed, Condition condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
  while (!condition()) {
    if (!changed.WaitFor(mu, absl::Seconds(30))) return condition();
  }
  return true;
}

// A server's handler that records what happens and, unless told otherwise, sends every message back.
class EchoHandler : public ExchangeServer::Handler {
 public:
  explicit EchoHandler(bool echo = true) : echo_(echo) {}

  void OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&& message) override;
  void OnClosed(uint64_t connection_id) override;

  bool AwaitMessages(int count);
  bool AwaitClosed(int count);
  // The last connection that a message came on.
  std::shared_ptr<Connection> connection();

 private:
  const bool echo_;
  Mutex mu_;
  CondVar changed_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mu_);
  int messages_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<uint64_t> closed_ ABSL_GUARDED_BY(mu_);
};

// A client's handler that keeps what comes.
class Inbox : public ExchangeClient::Handler {
 public:
  void OnMessages(std::vector<grpc::ByteBuffer> messages) override;
  void OnDisconnected(absl::Status status) override;

  // Whether that many came within half a minute.
  bool AwaitCount(size_t count);
  // A copy of the messages so far, once there are `count`, or as many as came in half a minute.
  std::vector<std::string> AwaitMessages(size_t count);
  // OK when the stream did not break within half a minute.
  absl::Status AwaitDisconnected();

 private:
  Mutex mu_;
  CondVar changed_;
  std::vector<std::string> messages_ ABSL_GUARDED_BY(mu_);
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

// Stands between a client and a server on 127.0.0.1 and can stop passing anything on, as a network that is cut does.
class Relay {
 public:
  explicit Relay(int server_port);
  ~Relay();

  int port() const { return port_; }
  // From now on nothing goes through, and neither side is told.
  void Cut() { cut_ = true; }

 private:
  void Run(int server_port);

  int listener_ = -1;
  int stop_[2] = {-1, -1};  // A pipe; a byte in it ends the thread.
  int port_ = 0;
  std::atomic<bool> cut_{false};
  std::thread thread_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_TESTING_PEERS_H_
