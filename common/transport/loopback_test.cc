#include "common/transport/loopback.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

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
