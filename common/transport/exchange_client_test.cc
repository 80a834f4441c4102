#include "common/transport/exchange_client.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/transport/exchange_server.h"
#include "common/transport/testing/peers.h"
#include "proto/parameter_server.grpc.pb.h"

namespace rubato {
namespace {

ExchangeClient::Options To(int port) {
  ExchangeClient::Options options;
  options.address = absl::StrCat("127.0.0.1:", port);
  options.connect_timeout = absl::Seconds(30);
  return options;
}

// An ordinary generated service: answers each request with its id and payload, `copies` times, and ends with `status`
// after `answers`.
class OrdinaryServer : public v1::ParameterServer::Service {
 public:
  OrdinaryServer(int answers, grpc::Status status, int copies = 1)
      : answers_(answers), copies_(copies), status_(std::move(status)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(-1);
    server_ = builder.BuildAndStart();
  }

  int port() const { return port_; }

 private:
  grpc::Status Exchange(grpc::ServerContext*,
                        grpc::ServerReaderWriter<v1::ExchangeReply, v1::ExchangeRequest>* stream) override {
    v1::ExchangeRequest request;
    for (int i = 0; i < answers_ && stream->Read(&request); ++i) {
      v1::ExchangeReply reply;
      reply.set_request_id(request.request_id());
      reply.set_payload(request.payload());
      for (int copy = 0; copy < copies_; ++copy) stream->Write(reply);
    }
    return status_;
  }

  const int answers_;
  const int copies_;
  const grpc::Status status_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(ExchangeClientTest, TalksToAnOrdinaryServer) {
  OrdinaryServer server(20, grpc::Status(grpc::StatusCode::ABORTED, "enough"));
  Inbox inbox;
  auto client = ExchangeClient::Create(To(server.port()), &inbox);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->connected());
  for (uint64_t id = 1; id <= 20; ++id) {
    v1::ExchangeRequest request;
    request.set_request_id(id);
    request.set_payload(std::string(id * 100000, 'p'));
    (*client)->Send(ToBuffer(request.SerializeAsString()));
    const std::vector<std::string> messages = inbox.AwaitMessages(id);
    ASSERT_EQ(messages.size(), id);
    v1::ExchangeReply reply;
    ASSERT_TRUE(reply.ParseFromString(messages.back()));
    EXPECT_EQ(reply.request_id(), id);
    EXPECT_TRUE(reply.payload() == request.payload());
  }
  EXPECT_EQ(inbox.AwaitDisconnected(), absl::AbortedError("enough"));
  EXPECT_FALSE((*client)->connected());
}

TEST(ExchangeClientTest, HearsMoreThanItAskedFor) {
  OrdinaryServer server(1, grpc::Status(grpc::StatusCode::ABORTED, "enough"), /*copies=*/3);
  Inbox inbox;
  auto client = ExchangeClient::Create(To(server.port()), &inbox);
  ASSERT_TRUE(client.ok()) << client.status();
  (*client)->Send(ToBuffer(v1::ExchangeRequest().SerializeAsString()));
  EXPECT_EQ(inbox.AwaitMessages(3).size(), 3u);
  EXPECT_EQ(inbox.AwaitDisconnected(), absl::AbortedError("enough"));
}

TEST(ExchangeClientTest, AStreamThatTheServerEndsWellIsBrokenToo) {
  OrdinaryServer server(0, grpc::Status::OK);
  Inbox inbox;
  auto client = ExchangeClient::Create(To(server.port()), &inbox);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(inbox.AwaitDisconnected(), absl::UnavailableError("the server ended the stream"));
}

TEST(ExchangeClientTest, CreateFailsAtOnceWhereNobodyListens) {
  int port = 0;
  {
    OrdinaryServer gone(0, grpc::Status::OK);
    port = gone.port();
  }
  Inbox inbox;
  const absl::Status status = ExchangeClient::Create(To(port), &inbox).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), absl::StrCat("no connection to 127.0.0.1:", port, ": "))) << status;
}

TEST(ExchangeClientTest, CreateEndsWhenAPeerNeverAnswers) {
  OrdinaryServer server(0, grpc::Status::OK);
  Relay relay(server.port());
  relay.Cut();
  ExchangeClient::Options options = To(relay.port());
  options.connect_timeout = absl::Milliseconds(100);
  Inbox inbox;
  EXPECT_EQ(ExchangeClient::Create(options, &inbox).status(),
            absl::DeadlineExceededError(absl::StrCat("no connection to ", options.address, " within 100ms")));
}

TEST(ExchangeClientTest, RefusesOptionsOutOfRange) {
  Inbox inbox;
  EXPECT_EQ(ExchangeClient::Create({}, &inbox).status().code(), absl::StatusCode::kInvalidArgument);
  ExchangeClient::Options options = To(1);
  options.connect_timeout = absl::ZeroDuration();
  EXPECT_EQ(ExchangeClient::Create(options, &inbox).status().message(), "connect_timeout: 0 is not above 0");
  options = To(1);
  options.max_message_bytes = 0;
  EXPECT_EQ(ExchangeClient::Create(options, &inbox).status().message(),
            "max_message_bytes: 0 is not in [1, 2147483647]");
}

TEST(ExchangeClientTest, ACutNetworkIsNoticedOnBothSides) {
  const Keepalive keepalive{.interval = absl::Milliseconds(200), .timeout = absl::Milliseconds(200)};
  EchoHandler echo;
  auto server = ExchangeServer::Create({.listen = "127.0.0.1:0", .keepalive = keepalive}, &echo);
  ASSERT_TRUE(server.ok()) << server.status();
  Relay relay((*server)->port());
  ExchangeClient::Options options = To(relay.port());
  options.keepalive = keepalive;
  Inbox inbox;
  auto client = ExchangeClient::Create(options, &inbox);
  ASSERT_TRUE(client.ok()) << client.status();
  (*client)->Send(ToBuffer("hello"));
  ASSERT_EQ(inbox.AwaitMessages(1).size(), 1u);
  relay.Cut();
  EXPECT_EQ(inbox.AwaitDisconnected().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(echo.AwaitClosed(1));
}

TEST(ExchangeClientTest, AServerThatDoesNotReadBreaksTheStreamWhenTooMuchWaits) {
  class NeverReads : public v1::ParameterServer::Service {
   public:
    grpc::Status Exchange(grpc::ServerContext*,
                          grpc::ServerReaderWriter<v1::ExchangeReply, v1::ExchangeRequest>*) override {
      MutexLock lock(mu_);
      Await(mu_, changed_, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return done_; });
      return grpc::Status::OK;
    }
    void End() {
      MutexLock lock(mu_);
      done_ = true;
      changed_.NotifyAll();
    }

   private:
    Mutex mu_;
    CondVar changed_;
    bool done_ ABSL_GUARDED_BY(mu_) = false;
  } service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ExchangeClient::Options options = To(port);
  options.max_queued_bytes = 10 << 20;
  Inbox inbox;
  auto client = ExchangeClient::Create(options, &inbox);
  ASSERT_TRUE(client.ok()) << client.status();
  const grpc::ByteBuffer message = ToBuffer(std::string(1 << 20, 'x'));
  for (int i = 0; i < 200; ++i) (*client)->Send(grpc::ByteBuffer(message));
  EXPECT_EQ(inbox.AwaitDisconnected().code(), absl::StatusCode::kResourceExhausted);
  service.End();
}

TEST(ExchangeClientTest, MayBeShutDownAfterAnAnswer) {
  EchoHandler echo;
  auto server = ExchangeServer::Create({.listen = "127.0.0.1:0"}, &echo);
  ASSERT_TRUE(server.ok()) << server.status();
  for (int i = 1; i <= 20; ++i) {
    Inbox inbox;
    auto client = ExchangeClient::Create(To((*server)->port()), &inbox);
    ASSERT_TRUE(client.ok()) << client.status();
    (*client)->Send(ToBuffer("hello"));
    ASSERT_TRUE(inbox.AwaitCount(1));
    (*client)->Shutdown();
    EXPECT_TRUE(echo.AwaitClosed(i));
  }
}

TEST(ExchangeClientTest, ShutdownIsNotADisconnection) {
  EchoHandler echo;
  auto server = ExchangeServer::Create({.listen = "127.0.0.1:0"}, &echo);
  ASSERT_TRUE(server.ok()) << server.status();
  class CountsCalls : public ExchangeClient::Handler {
   public:
    void OnMessages(std::vector<grpc::ByteBuffer>) override { ++calls; }
    void OnDisconnected(absl::Status) override { ++calls; }
    int calls = 0;
  } handler;
  auto client = ExchangeClient::Create(To((*server)->port()), &handler);
  ASSERT_TRUE(client.ok()) << client.status();
  (*client)->Shutdown();
  (*client)->Shutdown();
  (*client)->Send(ToBuffer("dropped"));
  client->reset();
  EXPECT_EQ(handler.calls, 0);
  EXPECT_TRUE(echo.AwaitClosed(1));
}

}  // namespace
}  // namespace rubato
