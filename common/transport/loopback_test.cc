#include "common/transport/loopback.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace rubato {
namespace {

// Two connections on 127.0.0.1.
class LoopbackTest : public testing::Test {
 protected:
  LoopbackTest() {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 2), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    for (int& client : clients_) {
      client = socket(AF_INET, SOCK_STREAM, 0);
      EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), size), 0);
    }
  }
  ~LoopbackTest() override {
    for (int client : clients_) close(client);
    close(listener_);
  }

  static std::string Congestion(int descriptor) {
    char name[16] = {};
    socklen_t size = sizeof(name);
    EXPECT_EQ(getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
    return name;
  }

  static int SendBytes(int descriptor) {
    int bytes = 0;
    socklen_t size = sizeof(bytes);
    EXPECT_EQ(getsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, &size), 0);
    return bytes;
  }

  int listener_ = -1;
  int clients_[2] = {-1, -1};
  int port_ = 0;
};

// A port of a socket's end; 0 if it has none.
int Port(int descriptor, int (*name_of)(int, sockaddr*, socklen_t*)) {
  sockaddr_in name = {};
  socklen_t size = sizeof(name);
  return name_of(descriptor, reinterpret_cast<sockaddr*>(&name), &size) == 0 ? ntohs(name.sin_port) : 0;
}

TEST_F(LoopbackTest, AChannelsConnectionsAreNotPacedFromTheBeginning) {
  const timeval deadline = {.tv_sec = 30, .tv_usec = 0};
  ASSERT_EQ(setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)), 0);
  for (int i = 0; i < 2; ++i) close(accept(listener_, nullptr, nullptr));  // Those of the fixture.
  const std::string address = absl::StrCat("127.0.0.1:", port_);
  grpc::ChannelArguments arguments;
  TuneLoopbackChannel(address, &arguments);
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  channel->GetState(/*try_to_connect=*/true);
  const int accepted = accept(listener_, nullptr, nullptr);
  ASSERT_GE(accepted, 0) << "the channel did not connect within 30 s";
  int found = 0;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    if (Port(descriptor, getpeername) != port_) continue;
    if (Port(descriptor, getsockname) != Port(accepted, getpeername)) continue;
    ++found;
    EXPECT_EQ(Congestion(descriptor), "reno");
  }
  EXPECT_EQ(found, 1);
  close(accepted);
}

TEST_F(LoopbackTest, AChannelToAnotherHostIsTheSystemsMatter) {
  grpc::ChannelArguments arguments;
  const int before = static_cast<int>(arguments.c_channel_args().num_args);
  TuneLoopbackChannel("10.0.0.1:7000", &arguments);
  EXPECT_EQ(arguments.c_channel_args().num_args, before);
  TuneLoopbackChannel("localhost:7000", &arguments);
  EXPECT_EQ(arguments.c_channel_args().num_args, before + 1);
}

TEST_F(LoopbackTest, TunesTheConnectionsToThatPeer) {
  TuneLoopbackSockets(absl::StrCat("ipv4:127.0.0.1:", port_));
  for (int client : clients_) EXPECT_EQ(Congestion(client), "reno");
}

TEST_F(LoopbackTest, LetsTheSystemTakeLittleAheadAndWholeMessagesAgain) {
  const std::string peer = absl::StrCat("ipv4:127.0.0.1:", port_);
  TuneLoopbackSockets(peer);
  const int tuned = SendBytes(clients_[0]);
  SetLoopbackSendAhead(absl::StrCat("ipv4:127.0.0.1:", port_ ^ 1), SendAhead::kLittle);
  EXPECT_EQ(SendBytes(clients_[0]), tuned);
  SetLoopbackSendAhead(peer, SendAhead::kLittle);
  const int little = SendBytes(clients_[0]);
  EXPECT_EQ(SendBytes(clients_[1]), little);
  SetLoopbackSendAhead(peer, SendAhead::kMessage);
  EXPECT_EQ(SendBytes(clients_[0]), tuned);
  // Linux doubles what it is asked for, and gives no more than net.core.wmem_max, twice.
  EXPECT_EQ(little, std::min(tuned, 1 << 19));
}

TEST_F(LoopbackTest, LeavesOthersAlone) {
  const std::string before = Congestion(clients_[0]);
  if (before == "reno") GTEST_SKIP() << "it is the system's default";
  TuneLoopbackSockets(absl::StrCat("ipv4:127.0.0.1:", port_ ^ 1));
  TuneLoopbackSockets(absl::StrCat("ipv4:10.0.0.1:", port_));
  TuneLoopbackSockets("unix:/tmp/somewhere");
  TuneLoopbackSockets("");
  EXPECT_EQ(Congestion(clients_[0]), before);
}

}  // namespace
}  // namespace rubato
