#include "common/shared_memory/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "common/shared_memory/testing/peers.h"

namespace rubato {
namespace {

std::string Name(const std::string& test) { return "rubato-unix-socket-test-" + std::to_string(getpid()) + test; }

struct Connection {
  FileDescriptor client;
  FileDescriptor server;
};

Connection Connect(const std::string& test) {
  const FileDescriptor listening = ListenAbstract(Name(test)).value();
  FileDescriptor client = ConnectAbstract(Name(test), kTestTimeout).value();
  return {.client = std::move(client), .server = AcceptPeer(listening).value()};
}

TEST(UnixSocketTest, CarriesPacketsBothWays) {
  const Connection connection = Connect("packets");
  EXPECT_TRUE(absl::IsOutOfRange(ReceivePacket(connection.server).status()));
  ASSERT_TRUE(SendPacket(connection.client, "one", -1).ok());
  ASSERT_TRUE(SendPacket(connection.client, "two", -1).ok());
  ASSERT_TRUE(SendPacket(connection.server, "three", -1).ok());
  EXPECT_EQ(ReceivePacket(connection.server)->bytes, "one");
  EXPECT_EQ(ReceivePacket(connection.server)->bytes, "two");
  EXPECT_EQ(ReceivePacket(connection.client)->bytes, "three");
}

TEST(UnixSocketTest, CarriesAnOpenFileThatIsClosedOnExec) {
  const Connection connection = Connect("file");
  const FileDescriptor file = TestMemfd(100, 0);
  ASSERT_TRUE(SendPacket(connection.client, "x", file.get()).ok());
  const Packet packet = ReceivePacket(connection.server).value();
  ASSERT_EQ(packet.descriptors.size(), 1u);
  EXPECT_NE(packet.descriptors[0].get(), file.get());
  EXPECT_EQ(lseek(packet.descriptors[0].get(), 0, SEEK_END), 100);
  EXPECT_EQ(fcntl(packet.descriptors[0].get(), F_GETFD), FD_CLOEXEC);
}

TEST(UnixSocketTest, ClosesWhatComesWithABadPacket) {
  const Connection connection = Connect("bad");
  const FileDescriptor file = TestMemfd(100, 0);
  const size_t files = OpenFileCount();
  ASSERT_TRUE(SendRaw(connection.client, "x", std::vector<int>(20, file.get())));
  EXPECT_TRUE(absl::IsInvalidArgument(ReceivePacket(connection.server).status()));
  ASSERT_TRUE(SendRaw(connection.client, std::string(kPacketBytesMax + 1, 'x'), {file.get()}));
  EXPECT_TRUE(absl::IsInvalidArgument(ReceivePacket(connection.server).status()));
  ASSERT_TRUE(SendRaw(connection.client, std::string(kPacketBytesMax, 'x'), {file.get()}));
  EXPECT_EQ(ReceivePacket(connection.server)->bytes.size(), kPacketBytesMax);
  EXPECT_EQ(OpenFileCount(), files);
}

TEST(UnixSocketTest, NoticesThatThePeerIsGone) {
  Connection connection = Connect("gone");
  connection.client.Close();
  EXPECT_TRUE(absl::IsUnavailable(ReceivePacket(connection.server).status()));
  EXPECT_TRUE(absl::IsUnavailable(SendPacket(connection.server, "x", -1)));
}

TEST(UnixSocketTest, KnowsItsPeer) {
  const Connection connection = Connect("user");
  EXPECT_TRUE(CheckPeerUser(connection.client).ok());
  EXPECT_TRUE(CheckPeerUser(connection.server).ok());
  EXPECT_EQ(DescribePeer(connection.server), "process " + std::to_string(getpid()));
}

TEST(UnixSocketTest, RefusesBadNamesAndTimeouts) {
  for (const std::string& name : {std::string(), std::string(kAbstractNameBytesMax + 1, 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ListenAbstract(name).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(ConnectAbstract(name, kTestTimeout).status()));
  }
  EXPECT_TRUE(ListenAbstract(Name(std::string(kAbstractNameBytesMax - Name("").size(), 'x'))).ok());
  for (absl::Duration timeout : {absl::ZeroDuration(), absl::Seconds(-1)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ConnectAbstract(Name("timeout"), timeout).status()));
  }
}

TEST(UnixSocketTest, NameIsTakenWhileSomebodyListens) {
  {
    const FileDescriptor listening = ListenAbstract(Name("taken")).value();
    EXPECT_TRUE(absl::IsAlreadyExists(ListenAbstract(Name("taken")).status()));
  }
  EXPECT_TRUE(absl::IsUnavailable(ConnectAbstract(Name("taken"), kTestTimeout).status()));
  EXPECT_TRUE(ListenAbstract(Name("taken")).ok());
}

TEST(UnixSocketTest, ConnectingAndReadingEndWithTheTimeout) {
  const FileDescriptor listening = ListenAbstract(Name("full")).value();
  ASSERT_EQ(listen(listening.get(), 0), 0);
  const FileDescriptor first = ConnectAbstract(Name("full"), absl::Milliseconds(1)).value();
  EXPECT_TRUE(absl::IsDeadlineExceeded(ConnectAbstract(Name("full"), absl::Milliseconds(1)).status()));
  EXPECT_TRUE(absl::IsOutOfRange(ReceivePacket(first).status()));
}

}  // namespace
}  // namespace rubato
