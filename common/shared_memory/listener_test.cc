#include "common/shared_memory/listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/shared_memory/hello.h"
#include "common/shared_memory/link.h"
#include "common/shared_memory/testing/peers.h"
#include "common/shared_memory/unix_socket.h"

namespace rubato {
namespace {

FileDescriptor RawPeer(const TestServer& server) {
  return ConnectAbstract(server.address().socket(), kTestTimeout).value();
}

absl::Status AnswerTo(const FileDescriptor& peer) {
  const absl::StatusOr<Packet> packet = ReceivePacket(peer);
  return packet.ok() ? DecodeWelcome(packet->bytes).status() : packet.status();
}

// What the server answers to a packet with these descriptors as the first on a connection.
absl::Status AnswerTo(const TestServer& server, const std::string& bytes, const std::vector<int>& descriptors) {
  const FileDescriptor peer = RawPeer(server);
  EXPECT_TRUE(SendRaw(peer, bytes, descriptors));
  return AnswerTo(peer);
}

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& reason) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_NE(std::string(status.message()).find(reason), std::string::npos) << status;
}

void ExpectInvalid(const absl::Status& status, const std::string& reason) {
  ExpectError(status, absl::StatusCode::kInvalidArgument, reason);
}

TEST(SharedMemoryListenerTest, RefusesBadOptions) {
  RealClock clock;
  Logger log("test", &clock);
  const SharedMemoryListener::Options good = {.offered = TestRegion(1, 1), .clock = &clock, .log = &log};
  EXPECT_TRUE(SharedMemoryListener::Create(good).ok());
  SharedMemoryListener::Options bad = good;
  bad.offered = nullptr;
  ExpectInvalid(SharedMemoryListener::Create(bad).status(), "offered: null");
  bad.offered = SharedRegion::Map(FileDescriptor(dup(good.offered->descriptor())), 1).value();
  ExpectInvalid(SharedMemoryListener::Create(bad).status(), "offered: a region that a peer offered");
  bad = good;
  bad.peers_max = 0;
  ExpectInvalid(SharedMemoryListener::Create(bad).status(), "peers_max: 0");
  bad = good;
  bad.hello_timeout = absl::ZeroDuration();
  ExpectInvalid(SharedMemoryListener::Create(bad).status(), "hello_timeout: 0");
  bad = good;
  bad.clock = nullptr;
  ExpectInvalid(SharedMemoryListener::Create(bad).status(), "clock: null");
}

TEST(SharedMemoryListenerTest, EveryListenerHasANameOfItsOwn) {
  const TestServer one, another;
  EXPECT_NE(one.address().socket(), another.address().socket());
  EXPECT_EQ(one.address().boot_id(), another.address().boot_id());
}

TEST(SharedMemoryListenerTest, FindsARegionForItsSessionAndTaskOnly) {
  TestServer server;
  const auto first = server.Connect(1, TestRegion(4096, 11)).value();
  const auto second = server.Connect(2, TestRegion(4096, 22)).value();
  EXPECT_NE(first->session(), second->session());
  EXPECT_EQ(server.Find(first->session(), TestWorker(1))->data()[0], 11);
  EXPECT_EQ(server.Find(second->session(), TestWorker(2))->data()[0], 22);
  EXPECT_EQ(server.Find(first->session(), TestWorker(2)), nullptr);
  EXPECT_EQ(server.Find(first->session() ^ 1, TestWorker(1)), nullptr);
  EXPECT_EQ(server.Find(0, TestWorker(1)), nullptr);
  v1::TaskId restarted = TestWorker(1);
  restarted.set_incarnation(5);
  EXPECT_EQ(server.Find(first->session(), restarted), nullptr);
}

TEST(SharedMemoryListenerTest, RefusesHellosThatAreNoneAndGoesOn) {
  TestServer server({.peer_bytes_max = 4096});
  const auto good = server.Connect(1, TestRegion(4096, 11)).value();
  const FileDescriptor region = TestMemfd(4096, F_SEAL_SHRINK);
  const std::string hello = EncodeHello(TestWorker(0));
  std::string version = hello;
  version[8] = 9;
  ExpectInvalid(AnswerTo(server, "GET / HTTP/1.1\r\n\r\n", {}), "is no hello");
  ExpectInvalid(AnswerTo(server, std::string(5000, 'x'), {region.get()}), "more than the 1024 bytes allowed");
  ExpectInvalid(AnswerTo(server, version, {region.get()}), "version 9; version 1 is allowed");
  ExpectInvalid(AnswerTo(server, hello.substr(0, 31), {region.get()}), "a hello of 31 bytes");
  ExpectInvalid(AnswerTo(server, hello, {}), "0 descriptors; 1 is allowed");
  ExpectInvalid(AnswerTo(server, hello, {region.get(), region.get()}), "2 descriptors; 1 is allowed");
  ExpectInvalid(AnswerTo(server, hello, std::vector<int>(100, region.get())), "descriptors of a packet were lost");
  ExpectInvalid(AnswerTo(server, hello, {STDERR_FILENO}), "not of shared memory");
  ExpectInvalid(AnswerTo(server, hello, {TestMemfd(4096, 0).get()}), "not sealed against shrinking");
  ExpectInvalid(AnswerTo(server, hello, {TestMemfd(0, F_SEAL_SHRINK).get()}), "is empty");
  ExpectInvalid(AnswerTo(server, hello, {TestMemfd(4097, F_SEAL_SHRINK).get()}), "more than the 4096 allowed");
  EXPECT_TRUE(AnswerTo(server, hello, {region.get()}).ok());
  EXPECT_EQ(server.Find(good->session(), TestWorker(1))->data()[0], 11);
}

TEST(SharedMemoryListenerTest, DropsAPeerThatSaysNothing) {
  TestServer server({.hello_timeout = absl::Milliseconds(10)});
  const FileDescriptor silent = RawPeer(server);
  ExpectError(AnswerTo(silent), absl::StatusCode::kDeadlineExceeded, "no hello within 10ms");
  EXPECT_TRUE(absl::IsUnavailable(ReceivePacket(silent).status()));
}

TEST(SharedMemoryListenerTest, ManySilentPeersOnlyDelayOthers) {
  TestServer server({.hello_timeout = absl::Milliseconds(10)});
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(RawPeer(server));
  EXPECT_TRUE(server.Connect(1, TestRegion(4096, 11)).ok());
}

TEST(SharedMemoryListenerTest, DropsAPeerThatSpeaksAfterItsHello) {
  TestServer server;
  const FileDescriptor region = TestMemfd(4096, F_SEAL_SHRINK);
  const FileDescriptor peer = RawPeer(server);
  ASSERT_TRUE(SendRaw(peer, EncodeHello(TestWorker(0)), {region.get()}));
  const uint64_t session = DecodeWelcome(ReceivePacket(peer)->bytes).value();
  EXPECT_NE(server.Find(session, TestWorker(0)), nullptr);
  ASSERT_TRUE(SendRaw(peer, "more", {region.get()}));
  EXPECT_TRUE(absl::IsUnavailable(ReceivePacket(peer).status()));
  ASSERT_TRUE(server.Connect(1, TestRegion(1, 1)).ok());
  EXPECT_EQ(server.Find(session, TestWorker(0)), nullptr);
}

TEST(SharedMemoryListenerTest, RefusesPeersBeyondItsPlacesUntilOneIsFree) {
  TestServer server({.peers_max = 1});
  auto first = server.Connect(1, TestRegion(1, 1)).value();
  ExpectError(server.Connect(2, TestRegion(1, 1)).status(), absl::StatusCode::kResourceExhausted,
              "all 1 places are taken");
  first = nullptr;
  EXPECT_TRUE(server.Connect(2, TestRegion(1, 1)).ok());
}

TEST(SharedMemoryListenerTest, LetsNobodyElseIn) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  ChildProcess intruder([](ChildProcess::Channel& parent) {
    const std::string socket = parent.Receive();
    const FileDescriptor region = TestMemfd(4096, F_SEAL_SHRINK);
    if (setuid(65534) != 0) return;
    const FileDescriptor peer = ConnectAbstract(socket, kTestTimeout).value();
    SendRaw(peer, EncodeHello(TestWorker(0)), {region.get()});
    const absl::StatusOr<Packet> packet = ReceivePacket(peer);
    parent.Send(absl::IsUnavailable(packet.status()) ? "nothing" : "something");
  });
  TestServer server;
  intruder.channel().Send(server.address().socket());
  EXPECT_EQ(intruder.channel().Receive(), "nothing");
  EXPECT_TRUE(server.Connect(1, TestRegion(1, 1)).ok());
}

// Two processes, since both ends' open files would count.
TEST(SharedMemoryListenerTest, WaitsForRoomForAnotherOpenFile) {
  ChildProcess child([](ChildProcess::Channel& parent) {
    TestServer server;
    rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = static_cast<rlim_t>(FileDescriptor(dup(STDERR_FILENO)).get());
    setrlimit(RLIMIT_NOFILE, &limit);
    parent.Send(server.address().SerializeAsString());
    parent.Receive();
    limit.rlim_cur = before;
    setrlimit(RLIMIT_NOFILE, &limit);
    parent.Send("room");
    parent.Receive();
  });
  v1::SharedMemoryAddress address;
  ASSERT_TRUE(address.ParseFromString(child.channel().Receive()));
  const auto connect = [&](absl::Duration timeout) {
    return SharedMemoryLink::Connect(address, TestWorker(1), TestRegion(4096, 1), 1 << 20, timeout).status();
  };
  EXPECT_TRUE(absl::IsDeadlineExceeded(connect(absl::Milliseconds(10))));
  child.channel().Send("make room");
  ASSERT_EQ(child.channel().Receive(), "room");
  EXPECT_EQ(connect(kTestTimeout), absl::OkStatus());
}

TEST(SharedMemoryListenerTest, EndsWhileWorkersAreConnected) {
  auto server = std::make_unique<TestServer>();
  const auto link = server->Connect(1, TestRegion(4096, 11)).value();
  const FileDescriptor silent = RawPeer(*server);
  const std::shared_ptr<const SharedRegion> held = server->Find(link->session(), TestWorker(1));
  server = nullptr;
  EXPECT_TRUE(absl::IsUnavailable(ReceivePacket(silent).status()));
  EXPECT_EQ(held->data()[0], 11);
  EXPECT_EQ(link->peer().data()[0], 7);
}

}  // namespace
}  // namespace rubato
