#include "common/limits/guarded_server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/http/testing/http_client.h"
#include "common/log.h"
#include "proto/coordinator.grpc.pb.h"

namespace rubato {
namespace {

class Answering : public v1::Coordinator::Service {
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*, v1::JobStatus*) override {
    return grpc::Status::OK;
  }
};

class GuardedServerTest : public testing::Test {
 protected:
  void Serve(PortLimits limits) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    auto server = GuardedServer::Start({.listen = "127.0.0.1:0",
                                        .credentials = grpc::InsecureServerCredentials(),
                                        .limits = limits,
                                        .refusals = &refusals_},
                                       &builder);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~GuardedServerTest() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }
  // What a call on a connection of its own comes to.
  grpc::Status Call(size_t bytes = 0) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::Coordinator::NewStub(grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::GetStatusRequest request;
    // A field that nobody knows, 1 of bytes.
    if (bytes > 0) request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(1)->assign(bytes, 'x');
    v1::JobStatus reply;
    return stub->GetStatus(&context, request, &reply);
  }
  // Whether the server ends this connection.
  static bool IsEnded(const FileDescriptor& client) {
    pollfd wait = {client.get(), POLLIN, 0};
    char bytes[512];
    // What a server says first on a connection is not its end.
    while (poll(&wait, 1, 30000) == 1) {
      if (recv(client.get(), bytes, sizeof(bytes), 0) <= 0) return true;
    }
    return false;
  }
  // A socket that is there already, so that it needs no further descriptor.
  void Connect(const FileDescriptor& client) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  bool AwaitProblem(const std::string& text) {
    for (int i = 0; i < 3000 && log_.last_problem() != text; ++i) clock_.Sleep(absl::Milliseconds(10));
    return log_.last_problem() == text;
  }

  RealClock clock_;
  Logger log_{"test", &clock_};
  RefusalLog refusals_{&clock_, &log_};
  Answering service_;
  std::unique_ptr<GuardedServer> server_;
};

TEST_F(GuardedServerTest, AMessageThatIsTooLongIsRefusedWithItsLimit) {
  Serve({.message_bytes = 1000});
  EXPECT_TRUE(Call(900).ok());
  const grpc::Status status = Call(2000);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("vs. 1000"), std::string::npos) << status.error_message();
  EXPECT_TRUE(Call().ok());
}

TEST_F(GuardedServerTest, ConnectionsThatSayNothingAreEnded) {
  Serve({.handshake_timeout = absl::Milliseconds(200)});
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(ConnectTo(server_->port()));
  EXPECT_TRUE(Call().ok());
  for (const FileDescriptor& client : silent) EXPECT_TRUE(IsEnded(client));
}

TEST_F(GuardedServerTest, AHostThatMakesTooManyConnectionsIsRefusedAndNamed) {
  Serve({.streams_per_host = 5, .handshake_timeout = absl::Seconds(1)});
  std::vector<FileDescriptor> all;
  for (int i = 0; i < 20; ++i) all.push_back(ConnectTo(server_->port()));
  for (size_t i = 5; i < all.size(); ++i) EXPECT_TRUE(IsEnded(all[i]));
  EXPECT_EQ(log_.last_problem(), "refused: a connection: 127.0.0.1 has made 5 within 1s (from 127.0.0.1)");
  EXPECT_TRUE(Call().ok());  // In the next second, as it waits for that.
}

class DescriptorLimitTest : public GuardedServerTest {
 protected:
  DescriptorLimitTest() { EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0); }
  ~DescriptorLimitTest() override { Restore(); }

  static void Set(rlim_t most, const rlimit& before) {
    rlimit limit = before;
    limit.rlim_cur = most;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  void Restore() { Set(before_.rlim_cur, before_); }
  static FileDescriptor Socket() { return FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

  rlimit before_ = {};
};

// gRPC's own listener would never accept again.
TEST_F(DescriptorLimitTest, AcceptsAgainWhenThereAreDescriptors) {
  Serve({});
  EXPECT_TRUE(Call().ok());
  // This process is the client too.
  std::vector<FileDescriptor> clients(3);
  for (FileDescriptor& client : clients) client = Socket();
  Set(3, before_);
  for (const FileDescriptor& client : clients) Connect(client);
  EXPECT_TRUE(AwaitProblem("refused: connections wait, as there are none: Too many open files (from everybody)"))
      << log_.last_problem();
  Restore();
  EXPECT_TRUE(Call().ok());
}

TEST_F(DescriptorLimitTest, SomeDescriptorsAreLeftToTheProcess) {
  Serve({});
  const FileDescriptor client = Socket();
  const rlim_t next = static_cast<rlim_t>(Socket().get());
  // A quarter of so few.
  const rlim_t most = next + 2;
  ASSERT_GE(most / 4, 2u);
  Set(most, before_);
  Connect(client);
  EXPECT_TRUE(IsEnded(client));
  Restore();
  EXPECT_EQ(log_.last_problem(), absl::StrCat("refused: a connection: this process has ", most - most / 4,
                                              " descriptors in use (from 127.0.0.1)"));
  EXPECT_TRUE(Call().ok());
}

}  // namespace
}  // namespace rubato
