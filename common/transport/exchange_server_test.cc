#include "common/transport/exchange_server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/transport/testing/peers.h"
#include "common/wire/bundle.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/parameter_server.grpc.pb.h"

namespace rubato {
namespace {

class ExchangeServerTest : public testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::ExchangeRequest, v1::ExchangeReply>;

  void Serve(ExchangeServer::Handler* handler, ExchangeServer::Options options = {}) {
    options.listen = "127.0.0.1:0";
    auto server = ExchangeServer::Create(options, handler);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials());
  }

  // A stream of an ordinary generated stub.
  std::unique_ptr<Stream> Open(grpc::ClientContext* context) {
    return v1::ParameterServer::NewStub(channel_)->Exchange(context);
  }

  EchoHandler echo_;
  EchoHandler silent_{/*echo=*/false};
  std::unique_ptr<ExchangeServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

v1::ExchangeRequest Request(uint64_t id, size_t payload_bytes = 0) {
  v1::ExchangeRequest request;
  request.set_request_id(id);
  request.set_payload(std::string(payload_bytes, 'p'));
  return request;
}

// An echoed request is a reply too: request_id and payload have the same numbers in both.
TEST_F(ExchangeServerTest, AnOrdinaryStubIsServed) {
  Serve(&echo_);
  grpc::ClientContext context;
  auto stream = Open(&context);
  v1::ExchangeReply reply;
  for (uint64_t id = 1; id <= 20; ++id) {
    const v1::ExchangeRequest request = Request(id, id * 100000);
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&reply));
    EXPECT_EQ(reply.request_id(), id);
    EXPECT_TRUE(reply.payload() == request.payload());
  }
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(echo_.AwaitClosed(1));
}

TEST_F(ExchangeServerTest, AStubThatSendsABundleGetsBundlesIfItSaysSo) {
  Serve(&echo_);
  v1::ExchangeRequest bundle;
  for (uint64_t id = 1; id <= 3; ++id) bundle.add_bundle(Request(id).SerializeAsString());
  for (const bool takes : {false, true}) {
    grpc::ClientContext context;
    if (takes) context.AddMetadata(kTakesBundles, "1");
    auto stream = Open(&context);
    ASSERT_TRUE(stream->Write(bundle));
    v1::ExchangeReply reply;
    for (uint64_t id = 1; id <= (takes ? 0 : 3); ++id) {
      ASSERT_TRUE(stream->Read(&reply));
      EXPECT_EQ(reply.request_id(), id);
    }
    // All three are answered at once.
    if (takes) {
      ASSERT_TRUE(stream->Read(&reply));
      EXPECT_EQ(reply.bundle_size(), 3);
    }
    stream->WritesDone();
    EXPECT_FALSE(stream->Read(&reply));
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(context.GetServerInitialMetadata().count(kTakesBundles), 1u);
  }
}

TEST_F(ExchangeServerTest, ABundleThatIsNoneEndsItsConnectionAndIsNamed) {
  Serve(&echo_);
  grpc::ClientContext context;
  auto stream = Open(&context);
  v1::ExchangeRequest request = Request(7);
  request.add_bundle(Request(8).SerializeAsString());
  // A bundle begins with its field.
  request.clear_payload();
  std::string bytes = request.SerializeAsString();
  const size_t id_bytes = 2;
  std::rotate(bytes.begin(), bytes.begin() + id_bytes, bytes.end());
  v1::ExchangeRequest rotated;
  rotated.GetReflection()->MutableUnknownFields(&rotated)->ParseFromString(bytes);
  ASSERT_TRUE(stream->Write(rotated));
  v1::ExchangeReply reply;
  EXPECT_FALSE(stream->Read(&reply));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("request_id"), std::string::npos) << status.error_message();
  EXPECT_TRUE(echo_.AwaitClosed(1));
}

TEST_F(ExchangeServerTest, AClientThatSendsNoMoreStillGetsItsAnswers) {
  Serve(&silent_);
  grpc::ClientContext context;
  auto stream = Open(&context);
  ASSERT_TRUE(stream->Write(Request(1)));
  ASSERT_TRUE(stream->Write(Request(2)));
  stream->WritesDone();
  ASSERT_TRUE(silent_.AwaitMessages(2));
  v1::ExchangeReply reply;
  for (uint64_t id = 1; id <= 2; ++id) {
    reply.set_request_id(id);
    silent_.connection()->Send(ToBuffer(reply.SerializeAsString()), 0);
    ASSERT_TRUE(stream->Read(&reply));
    EXPECT_EQ(reply.request_id(), id);
  }
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ExchangeServerTest, CloseWithOkSendsWhatIsQueued) {
  Serve(&echo_);
  grpc::ClientContext context;
  auto stream = Open(&context);
  ASSERT_TRUE(stream->Write(Request(1)));
  ASSERT_TRUE(echo_.AwaitMessages(1));
  for (int i = 0; i < 5; ++i) echo_.connection()->Send(ToBuffer(Request(7, 3 << 20).SerializeAsString()), 0);
  echo_.connection()->Close(absl::OkStatus());
  echo_.connection()->Send(ToBuffer("dropped"), 0);
  v1::ExchangeReply reply;
  int replies = 0;
  while (stream->Read(&reply)) ++replies;
  EXPECT_EQ(replies, 6);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(echo_.AwaitClosed(1));
}

TEST_F(ExchangeServerTest, CloseWithAnErrorTellsTheClientWhy) {
  Serve(&echo_);
  grpc::ClientContext context;
  auto stream = Open(&context);
  ASSERT_TRUE(stream->Write(Request(1)));
  v1::ExchangeReply reply;
  ASSERT_TRUE(stream->Read(&reply));
  ASSERT_TRUE(echo_.AwaitMessages(1));
  echo_.connection()->Close(absl::PermissionDeniedError("not a member"));
  EXPECT_FALSE(stream->Read(&reply));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(status.error_message(), "not a member");
  EXPECT_TRUE(echo_.AwaitClosed(1));
}

TEST_F(ExchangeServerTest, AClientThatDoesNotReadIsClosedWhenTooMuchWaits) {
  Serve(&echo_, {.limits = {.queued_bytes = 10 << 20}});
  grpc::ClientContext context;
  auto stream = Open(&context);
  ASSERT_TRUE(stream->Write(Request(1)));
  ASSERT_TRUE(echo_.AwaitMessages(1));
  // More than the queue, the sockets and the client's window hold together, and nobody reads.
  for (int i = 0; i < 200; ++i) echo_.connection()->Send(ToBuffer(std::string(1 << 20, 'x')), 0);
  EXPECT_TRUE(echo_.AwaitClosed(1));
  v1::ExchangeReply reply;
  while (stream->Read(&reply)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ExchangeServerTest, ATooLargeMessageEndsItsConnectionAlone) {
  Serve(&echo_, {.limits = {.message_bytes = 1000}});
  grpc::ClientContext good_context;
  auto good = Open(&good_context);
  grpc::ClientContext bad_context;
  auto bad = Open(&bad_context);
  bad->Write(Request(1, 2000));
  v1::ExchangeReply reply;
  EXPECT_FALSE(bad->Read(&reply));
  EXPECT_EQ(bad->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(echo_.AwaitClosed(1));
  EXPECT_TRUE(good->Write(Request(1, 900)));
  EXPECT_TRUE(good->Read(&reply));
  good->WritesDone();
  EXPECT_TRUE(good->Finish().ok());
}

TEST_F(ExchangeServerTest, ServesFurtherServicesAndRefusesUnknownMethods) {
  class Coordinator : public v1::Coordinator::Service {
    grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*, v1::JobStatus*) override {
      return grpc::Status::OK;
    }
  } coordinator;
  Serve(&echo_, {.services = {&coordinator}});
  auto stub = v1::Coordinator::NewStub(channel_);
  v1::JobStatus job;
  v1::StopJobReply stopped;
  grpc::ClientContext first;
  EXPECT_TRUE(stub->GetStatus(&first, {}, &job).ok());
  grpc::ClientContext second;
  EXPECT_EQ(stub->StopJob(&second, {}, &stopped).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  // Without the service.
  Serve(&echo_);
  grpc::ClientContext third;
  EXPECT_EQ(v1::Coordinator::NewStub(channel_)->GetStatus(&third, {}, &job).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ExchangeServerTest, ATakenPortIsAnError) {
  Serve(&echo_);
  const std::string listen = absl::StrCat("127.0.0.1:", server_->port());
  const absl::Status status = ExchangeServer::Create({.listen = listen}, &echo_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StartsWith(status.message(), absl::StrCat("cannot listen on ", listen, ": the port is taken")))
      << status;
}

TEST_F(ExchangeServerTest, RefusesOptionsOutOfRange) {
  for (const std::string listen : {"", "localhost", ":1", "localhost:", "localhost:65536", "localhost:x"}) {
    EXPECT_EQ(ExchangeServer::Create({.listen = listen}, &echo_).status().code(), absl::StatusCode::kInvalidArgument)
        << listen;
  }
  const absl::Status status =
      ExchangeServer::Create({.listen = "localhost:0", .limits = {.message_bytes = size_t{1} << 31}}, &echo_).status();
  EXPECT_EQ(status.message(), "limits.message_bytes: 2147483648 is not in [1, 2147483647]");
}

TEST_F(ExchangeServerTest, AShutdownDoesNotWaitForAClientThatStays) {
  Serve(&echo_);
  grpc::ClientContext context;
  auto stream = Open(&context);
  v1::ExchangeReply reply;
  ASSERT_TRUE(stream->Write(Request(1)));
  ASSERT_TRUE(stream->Read(&reply));
  server_->Shutdown();
  EXPECT_TRUE(echo_.AwaitClosed(1));
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace rubato
