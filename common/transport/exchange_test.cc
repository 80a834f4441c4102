// Both ends of the transport together, over real sockets.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/transport/exchange_client.h"
#include "common/transport/exchange_server.h"
#include "common/transport/send_queue.h"
#include "common/transport/testing/peers.h"
#include "common/wire/exchange_codec.h"

namespace rubato {
namespace {

constexpr size_t kLargeBytes = 4 << 20;

std::unique_ptr<ExchangeServer> Serve(ExchangeServer::Handler* handler) {
  auto server = ExchangeServer::Create({.listen = "127.0.0.1:0"}, handler);
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

std::unique_ptr<ExchangeClient> Connect(int port, ExchangeClient::Handler* handler) {
  ExchangeClient::Options options;
  options.address = absl::StrCat("127.0.0.1:", port);
  options.connect_timeout = absl::Seconds(30);
  auto client = ExchangeClient::Create(options, handler);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

TEST(ExchangeTest, SmallAndEmptyMessagesGoBothWaysInOrder) {
  EchoHandler echo;
  auto server = Serve(&echo);
  Inbox inbox;
  auto client = Connect(server->port(), &inbox);
  std::vector<std::string> sent;
  for (int i = 0; i < 300; ++i) {
    sent.push_back(i % 7 == 0 ? "" : absl::StrCat("message ", i));
    client->Send(ToBuffer(sent.back()));
  }
  EXPECT_EQ(inbox.AwaitMessages(sent.size()), sent);
}

// Counts how often messages came together.
class Groups : public Inbox {
 public:
  void OnMessages(std::vector<grpc::ByteBuffer> messages) override {
    ++groups_;
    Inbox::OnMessages(std::move(messages));
  }
  int groups() const { return groups_; }

 private:
  std::atomic<int> groups_{0};
};

TEST(ExchangeTest, QueuedMessagesTravelTogetherAndSoDoTheirAnswers) {
  EchoHandler echo;
  auto server = Serve(&echo);
  Groups inbox;
  auto client = Connect(server->port(), &inbox);
  // After an answer each side knows that the other takes bundles.
  client->Send(ToBuffer("first"));
  ASSERT_TRUE(inbox.AwaitCount(1));
  for (const char* message : {"a", "b", "c"}) client->Queue(ToBuffer(message));
  client->Flush();
  EXPECT_EQ(inbox.AwaitMessages(4), (std::vector<std::string>{"first", "a", "b", "c"}));
  // A full bundle waits for nothing.
  client->Queue(ToBuffer(std::string(SendQueue::kBundleBytesMax, 'd')));
  EXPECT_TRUE(inbox.AwaitCount(5));
  client = nullptr;
  EXPECT_EQ(inbox.groups(), 3);
}

TEST(ExchangeTest, LargeMessagesKeepEightInFlightInBothDirections) {
  constexpr int kMessages = 24;
  EchoHandler echo;
  auto server = Serve(&echo);
  Inbox inbox;
  auto client = Connect(server->port(), &inbox);
  std::vector<std::shared_ptr<const std::string>> sent;
  for (int i = 0; i < kMessages; ++i) {
    if (i >= 8) inbox.AwaitCount(static_cast<size_t>(i - 7));
    auto payload = std::make_shared<const std::string>(kLargeBytes + i, static_cast<char>('a' + i % 26));
    sent.push_back(payload);
    v1::ExchangeRequest header;
    header.set_request_id(static_cast<uint64_t>(i));
    client->Send(EncodeRequest(header, {SliceOf(payload, payload->data(), payload->size())}));
  }
  const std::vector<std::string> received = inbox.AwaitMessages(kMessages);
  ASSERT_EQ(received.size(), static_cast<size_t>(kMessages));
  for (int i = 0; i < kMessages; ++i) {
    v1::ExchangeRequest request;
    ASSERT_TRUE(request.ParseFromString(received[i]));
    EXPECT_EQ(request.request_id(), static_cast<uint64_t>(i));
    EXPECT_TRUE(request.payload() == *sent[i]) << i;
  }
}

TEST(ExchangeTest, ManyConnectionsSendFromManyThreads) {
  constexpr int kClients = 24;
  constexpr int kThreads = 3;
  constexpr int kMessages = 20;
  EchoHandler echo;
  auto server = Serve(&echo);
  std::vector<std::unique_ptr<Inbox>> inboxes;
  std::vector<std::unique_ptr<ExchangeClient>> clients;
  for (int i = 0; i < kClients; ++i) {
    inboxes.push_back(std::make_unique<Inbox>());
    clients.push_back(Connect(server->port(), inboxes.back().get()));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int m = 0; m < kMessages; ++m) {
        for (int i = 0; i < kClients; ++i) clients[i]->Send(ToBuffer(absl::StrCat("to client ", i)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kClients; ++i) {
    EXPECT_EQ(inboxes[i]->AwaitMessages(kThreads * kMessages),
              std::vector<std::string>(kThreads * kMessages, absl::StrCat("to client ", i)));
  }
  clients.clear();
  EXPECT_TRUE(echo.AwaitClosed(kClients));
}

// Sends every message back, so that with an echoing server what was once sent circulates for ever.
class Returner : public Inbox {
 public:
  void OnMessages(std::vector<grpc::ByteBuffer> messages) override {
    for (grpc::ByteBuffer& message : messages) client_.load()->Send(std::move(message));
  }
  void Start(ExchangeClient* client) {
    client_ = client;
    for (int i = 0; i < 8; ++i) client->Send(ToBuffer(std::string(1 << 20, 'x')));
  }

 private:
  std::atomic<ExchangeClient*> client_{nullptr};
};

TEST(ExchangeTest, AServerThatShutsDownWhileBothSendTellsItsClients) {
  EchoHandler echo;
  auto server = Serve(&echo);
  Returner inbox;
  auto client = Connect(server->port(), &inbox);
  inbox.Start(client.get());
  EXPECT_TRUE(echo.AwaitMessages(20));
  server->Shutdown();
  const absl::Status status = inbox.AwaitDisconnected();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_FALSE(client->connected());
  client->Send(ToBuffer("dropped"));
  echo.connection()->Send(ToBuffer("dropped"), 0);
  echo.connection()->Close(absl::OkStatus());
  server.reset();
  echo.connection()->Send(ToBuffer("dropped"), 0);
}

TEST(ExchangeTest, AClientThatEndsWhileBothSendIsReportedClosed) {
  EchoHandler echo;
  auto server = Serve(&echo);
  for (int round = 1; round <= 5; ++round) {
    Returner inbox;
    auto client = Connect(server->port(), &inbox);
    inbox.Start(client.get());
    EXPECT_TRUE(echo.AwaitMessages(20 * round));
    client.reset();
    EXPECT_TRUE(echo.AwaitClosed(round));
    echo.connection()->Send(ToBuffer("dropped"), 0);
  }
}

TEST(ExchangeTest, MemoryOfAMessageIsReleasedOnceItIsSent) {
  EchoHandler echo;
  auto server = Serve(&echo);
  Inbox inbox;
  auto client = Connect(server->port(), &inbox);
  auto payload = std::make_shared<const std::string>(kLargeBytes, 'x');
  const std::weak_ptr<const std::string> alive = payload;
  client->Send(EncodeRequest({}, {SliceOf(payload, payload->data(), payload->size())}));
  payload.reset();
  EXPECT_TRUE(inbox.AwaitCount(1));
  client->Shutdown();
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace rubato
