// Connections to servers over real sockets, with a clock of the test's.
#include "worker/ps_client/server_connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/file_descriptor.h"
#include "common/transport/exchange_server.h"
#include "worker/testing/shared_clock.h"

namespace rubato::worker {
namespace {

using ::testing::HasSubstr;

// A server's: sends every message back, or nothing.
class Echo : public ConnectionHandler {
 public:
  void OnMessage(std::shared_ptr<Connection> connection, grpc::ByteBuffer&& message) override {
    connection->Send(std::move(message), 0);
  }
  void OnClosed(uint64_t) override {}
};

// A worker's: counts, and waits up to half a minute.
class Recorder : public ServerConnections::Handler {
 public:
  void OnMessages(int connection, std::vector<grpc::ByteBuffer> messages,
                  std::shared_ptr<const SharedMemoryLink> memory) override {
    EXPECT_EQ(memory, nullptr);
    Count([&] { messages_[connection] += static_cast<int>(messages.size()); });
  }
  void OnConnected(int connection) override {
    Count([&] { ++connected_[connection]; });
  }
  void OnUnreachable(absl::Status status) override {
    Count([&] { unreachable_ = std::move(status); });
  }
  std::vector<bool> AwaitsAnswer() override {
    MutexLock lock(mu_);
    ++looks_;
    changed_.NotifyAll();
    return awaits_;
  }

  void SetAwaits(std::vector<bool> awaits) {
    MutexLock lock(mu_);
    awaits_ = std::move(awaits);
  }
  bool AwaitConnected(int connection, int times, absl::Duration within = absl::Seconds(30)) {
    return Await([&] { return connected_[connection] >= times; }, within);
  }
  bool AwaitMessages(int connection, int count) {
    return Await([&] { return messages_[connection] >= count; });
  }
  absl::Status AwaitUnreachable() {
    Await([&] { return !unreachable_.ok(); });
    MutexLock lock(mu_);
    return unreachable_;
  }
  // Until what is broken now has been looked at: a whole round of the upkeep from now on.
  bool AwaitRound() {
    int begin = 0;
    {
      MutexLock lock(mu_);
      begin = looks_;
    }
    return Await([&] { return looks_ >= begin + 2; });
  }
  int connected(int connection) {
    MutexLock lock(mu_);
    return connected_[connection];
  }

 private:
  void Count(const std::function<void()>& count) {
    MutexLock lock(mu_);
    count();
    changed_.NotifyAll();
  }
  bool Await(const std::function<bool()>& done, absl::Duration within = absl::Seconds(30)) {
    MutexLock lock(mu_);
    while (!done()) {
      if (!changed_.WaitFor(mu_, within)) return done();
    }
    return true;
  }

  Mutex mu_;
  CondVar changed_;
  std::map<int, int> connected_, messages_;
  std::vector<bool> awaits_ = {false, false, false, false};
  absl::Status unreachable_;
  int looks_ = 0;
};

// A port of this machine that connections can be made to, and on which nobody answers.
class SilentServer {
 public:
  SilentServer() {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
  }

  int port() const { return port_; }

 private:
  FileDescriptor listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int port_ = 0;
};

class ServerConnectionsTest : public testing::Test {
 protected:
  std::unique_ptr<ExchangeServer> Serve(int port = 0) {
    auto server = ExchangeServer::Create({.listen = absl::StrCat("127.0.0.1:", port)}, &echo_);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  // To servers on these ports.
  void Connect(const std::vector<int>& ports, int per_server = 1) {
    ServerConnections::Options options;
    for (size_t i = 0; i < ports.size(); ++i) {
      v1::ServerInfo& server = options.servers.emplace_back();
      server.mutable_task()->set_role(v1::TaskId::SERVER);
      server.mutable_task()->set_index(static_cast<uint32_t>(i));
      server.set_address(absl::StrCat("127.0.0.1:", ports[i]));
    }
    options.per_server = per_server;
    options.clock = &clock_;
    options.log = &log_;
    connections_.emplace(std::move(options), &handler_);
    connections_->Start();
  }

  void Send(int connection) {
    connections_->Send(connection, 0, [](const SharedMemoryLink* memory) {
      EXPECT_EQ(memory, nullptr);
      grpc::Slice slice("message");
      return grpc::ByteBuffer(&slice, 1);
    });
  }

  SharedClock clock_;
  Logger log_{"worker 0", &clock_};
  Echo echo_;
  Recorder handler_;
  std::optional<ServerConnections> connections_;
};

TEST_F(ServerConnectionsTest, OpensAsManyToEachServerAsItIsToldAndSendsThroughEach) {
  const auto first = Serve(), second = Serve();
  Connect({first->port(), second->port()}, 2);
  for (uint32_t server : {0u, 1u}) {
    for (int turn : {0, 1}) {
      const int index = connections_->IndexOf(server, turn);
      EXPECT_EQ(connections_->name(index), absl::StrCat("server ", server));
      ASSERT_TRUE(handler_.AwaitConnected(index, 1));
      Send(index);
      EXPECT_TRUE(handler_.AwaitMessages(index, 1));
    }
  }
  EXPECT_FALSE(connections_->all_share_memory());
}

TEST_F(ServerConnectionsTest, OneThatBreaksIsOpenedAgainAndTheOthersStay) {
  auto first = Serve();
  const auto second = Serve();
  Connect({first->port(), second->port()});
  ASSERT_TRUE(handler_.AwaitConnected(0, 1));
  ASSERT_TRUE(handler_.AwaitConnected(1, 1));
  const int port = first->port();
  first.reset();
  first = Serve(port);
  // Another try is due when the clock has moved.
  for (int tries = 0; tries < 100 && handler_.connected(0) < 2; ++tries) {
    clock_.Sleep(absl::Seconds(1));
    ASSERT_TRUE(handler_.AwaitRound());
  }
  ASSERT_TRUE(handler_.AwaitConnected(0, 2));
  EXPECT_THAT(log_.last_problem(), HasSubstr(absl::StrCat("connection to server 0 at 127.0.0.1:", port, " broke: ")));
  Send(0);
  EXPECT_TRUE(handler_.AwaitMessages(0, 1));
  EXPECT_EQ(handler_.connected(1), 1);
}

// Each of them is given up after two seconds; one after another they would take 24.
TEST_F(ServerConnectionsTest, DoesNotWaitForThoseThatDoNotAnswerToOpenTheOthers) {
  const SilentServer silent;
  const auto server = Serve();
  std::vector<int> ports(12, silent.port());
  ports.push_back(server->port());
  handler_.SetAwaits(std::vector<bool>(ports.size(), false));
  Connect(ports);
  EXPECT_TRUE(handler_.AwaitConnected(12, 1, absl::Seconds(20)));
}

TEST_F(ServerConnectionsTest, OneThatOwesAnAnswerAndIsSilentForTooLongIsOpenedAgain) {
  const auto first = Serve(), second = Serve();
  Connect({first->port(), second->port()});
  ASSERT_TRUE(handler_.AwaitConnected(0, 1));
  ASSERT_TRUE(handler_.AwaitConnected(1, 1));
  // Silence without a question is none.
  clock_.Sleep(absl::Seconds(1000));
  ASSERT_TRUE(handler_.AwaitRound());
  handler_.SetAwaits({false, true});
  ASSERT_TRUE(handler_.AwaitRound());
  clock_.Sleep(absl::Seconds(15));
  ASSERT_TRUE(handler_.AwaitRound());
  EXPECT_EQ(handler_.connected(1), 1);
  clock_.Sleep(absl::Seconds(10));
  ASSERT_TRUE(handler_.AwaitConnected(1, 2));
  EXPECT_EQ(handler_.connected(0), 1);
}

TEST_F(ServerConnectionsTest, AnAnswerEndsTheSilence) {
  const auto server = Serve();
  Connect({server->port()});
  ASSERT_TRUE(handler_.AwaitConnected(0, 1));
  handler_.SetAwaits({true});
  clock_.Sleep(absl::Seconds(15));
  Send(0);
  ASSERT_TRUE(handler_.AwaitMessages(0, 1));
  clock_.Sleep(absl::Seconds(15));
  ASSERT_TRUE(handler_.AwaitRound());
  EXPECT_EQ(handler_.connected(0), 1);
}

TEST_F(ServerConnectionsTest, SaysWhichServerCannotBeReached) {
  const auto server = Serve();
  int closed = 0;
  {
    const auto gone = Serve();
    closed = gone->port();
  }
  Connect({server->port(), closed});
  ASSERT_TRUE(handler_.AwaitConnected(0, 1));
  clock_.Sleep(absl::Seconds(61));
  const absl::Status status = handler_.AwaitUnreachable();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("server 1 at 127.0.0.1:", closed, " cannot be reached since 1m1s: ")));
}

TEST_F(ServerConnectionsTest, WhatIsSentWithoutAConnectionIsNotMade) {
  int closed = 0;
  {
    const auto gone = Serve();
    closed = gone->port();
  }
  Connect({closed});
  ASSERT_TRUE(handler_.AwaitRound());
  connections_->Send(0, 0, [](const SharedMemoryLink*) {
    ADD_FAILURE() << "there is no connection";
    return grpc::ByteBuffer();
  });
  EXPECT_TRUE(connections_->all_share_memory());
}

}  // namespace
}  // namespace rubato::worker
