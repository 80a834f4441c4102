#include "common/shared_memory/link.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/shared_memory/boot_id.h"
#include "common/shared_memory/hello.h"
#include "common/shared_memory/testing/peers.h"
#include "common/shared_memory/unix_socket.h"

namespace rubato {
namespace {

v1::SharedMemoryAddress AddressHere(const std::string& socket) {
  v1::SharedMemoryAddress address;
  address.set_boot_id(ReadBootId().value());
  address.set_socket(socket);
  return address;
}

std::string Name() { return "rubato-link-test-" + std::to_string(getpid()); }

absl::Status ConnectTo(const v1::SharedMemoryAddress& address, absl::Duration timeout = kTestTimeout) {
  return SharedMemoryLink::Connect(address, TestWorker(0), TestRegion(4096, 1), 4096, timeout).status();
}

void WaitUntilReadable(const FileDescriptor& socket) {
  pollfd watched = {.fd = socket.get(), .events = POLLIN, .revents = 0};
  poll(&watched, 1, static_cast<int>(absl::ToInt64Milliseconds(kTestTimeout)));
}

// What a worker learns from a server that answers its hello so.
absl::Status AnswerOf(const std::function<void(const FileDescriptor& peer)>& answer) {
  const FileDescriptor listening = ListenAbstract(Name()).value();
  std::thread server([&] {
    WaitUntilReadable(listening);
    const FileDescriptor peer = AcceptPeer(listening).value();
    WaitUntilReadable(peer);
    EXPECT_EQ(DecodeHello(ReceivePacket(peer)->bytes)->incarnation(), TestWorker(0).incarnation());
    answer(peer);
  });
  const absl::Status status = ConnectTo(AddressHere(Name()));
  server.join();
  return status;
}

void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& reason) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_NE(std::string(status.message()).find(reason), std::string::npos) << status;
}

TEST(SharedMemoryLinkTest, SaysThatTheServerIsOnAnotherHost) {
  v1::SharedMemoryAddress address = AddressHere(Name());
  address.set_boot_id("00000000-0000-0000-0000-000000000000");
  ExpectError(ConnectTo(address), absl::StatusCode::kFailedPrecondition, "another host");
}

TEST(SharedMemoryLinkTest, RefusesBadArguments) {
  v1::SharedMemoryAddress nowhere;
  ExpectError(ConnectTo(nowhere), absl::StatusCode::kInvalidArgument, "boot_id: empty");
  ExpectError(ConnectTo(AddressHere("")), absl::StatusCode::kInvalidArgument, "socket: a name of 0 bytes");
  ExpectError(ConnectTo(AddressHere(std::string(108, 'x'))), absl::StatusCode::kInvalidArgument, "1 to 107");
  ExpectError(ConnectTo(AddressHere(Name()), absl::ZeroDuration()), absl::StatusCode::kInvalidArgument, "timeout: 0");
  ExpectError(SharedMemoryLink::Connect(AddressHere(Name()), TestWorker(0), nullptr, 4096, absl::Seconds(1)).status(),
              absl::StatusCode::kInvalidArgument, "offered");
}

TEST(SharedMemoryLinkTest, SaysThatNobodyListens) {
  ExpectError(ConnectTo(AddressHere(Name())), absl::StatusCode::kUnavailable, Name());
}

TEST(SharedMemoryLinkTest, SaysThatTheServerDoesNotAnswer) {
  const FileDescriptor listening = ListenAbstract(Name()).value();
  ExpectError(ConnectTo(AddressHere(Name()), absl::Milliseconds(10)), absl::StatusCode::kDeadlineExceeded,
              "no answer within 10ms");
}

TEST(SharedMemoryLinkTest, SaysThatTheServerHungUp) {
  ExpectError(AnswerOf([](const FileDescriptor&) {}), absl::StatusCode::kUnavailable, "hung up");
}

TEST(SharedMemoryLinkTest, PassesOnWhyTheServerRefuses) {
  ExpectError(AnswerOf([](const FileDescriptor& peer) {
                EXPECT_TRUE(SendPacket(peer, EncodeWelcome(absl::ResourceExhaustedError("full")), -1).ok());
              }),
              absl::StatusCode::kResourceExhausted, "refused: full");
}

TEST(SharedMemoryLinkTest, RefusesAnAnswerThatIsNone) {
  ExpectError(AnswerOf([](const FileDescriptor& peer) { SendRaw(peer, "hello?", {}); }),
              absl::StatusCode::kInvalidArgument, "is no hello");
  ExpectError(
      AnswerOf([](const FileDescriptor& peer) { SendRaw(peer, EncodeWelcome(uint64_t{1}).substr(0, 200), {}); }),
      absl::StatusCode::kInvalidArgument, "200 bytes");
  ExpectError(AnswerOf([](const FileDescriptor& peer) { SendRaw(peer, EncodeWelcome(uint64_t{1}), {}); }),
              absl::StatusCode::kInvalidArgument, "0 descriptors");
}

TEST(SharedMemoryLinkTest, RefusesARegionThatItCannotTrust) {
  const auto offering = [](size_t bytes, int seals, int times) {
    return [=](const FileDescriptor& peer) {
      const FileDescriptor memfd = TestMemfd(bytes, seals);
      SendRaw(peer, EncodeWelcome(uint64_t{1}), std::vector<int>(static_cast<size_t>(times), memfd.get()));
    };
  };
  ExpectError(AnswerOf(offering(4096, 0, 1)), absl::StatusCode::kInvalidArgument, "not sealed");
  ExpectError(AnswerOf(offering(4097, F_SEAL_SHRINK, 1)), absl::StatusCode::kInvalidArgument, "4096 allowed");
  ExpectError(AnswerOf(offering(4096, F_SEAL_SHRINK, 2)), absl::StatusCode::kInvalidArgument, "2 descriptors");
  EXPECT_TRUE(AnswerOf(offering(4096, F_SEAL_SHRINK, 1)).ok());
}

TEST(SharedMemoryLinkTest, TellsNothingToAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  ChildProcess impostor([](ChildProcess::Channel& parent) {
    if (setuid(65534) != 0) return;
    const FileDescriptor listening = ListenAbstract(Name() + "-impostor").value();
    parent.Send("listens");
    parent.Receive();
    const FileDescriptor peer = AcceptPeer(listening).value();
    parent.Send(absl::IsUnavailable(ReceivePacket(peer).status()) ? "nothing" : "something");
  });
  ASSERT_EQ(impostor.channel().Receive(), "listens");
  // The child's name has the child's process number in it, which is not this process's.
  const std::string name = "rubato-link-test-" + std::to_string(impostor.process()) + "-impostor";
  ExpectError(ConnectTo(AddressHere(name)), absl::StatusCode::kPermissionDenied, "of user 65534; only user 0");
  impostor.channel().Send("accept");
  EXPECT_EQ(impostor.channel().Receive(), "nothing");
}

TEST(SharedMemoryLinkTest, FailuresLeaveNoOpenFiles) {
  const size_t files = OpenFileCount();
  ConnectTo(AddressHere(Name())).IgnoreError();
  AnswerOf([](const FileDescriptor& peer) { SendRaw(peer, "hello?", {peer.get()}); }).IgnoreError();
  EXPECT_EQ(OpenFileCount(), files);
}

}  // namespace
}  // namespace rubato
