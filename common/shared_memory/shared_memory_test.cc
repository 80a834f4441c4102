// Both sides together, in processes of their own if one of them dies.

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "common/shared_memory/link.h"
#include "common/shared_memory/listener.h"
#include "common/shared_memory/region.h"
#include "common/shared_memory/testing/peers.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

using Channel = ChildProcess::Channel;

// A worker process: connects to the address that it is told, tells its session, and says for everything that it is told
// afterwards what the first byte of the server's region is.
void RunWorker(Channel& parent) {
  v1::SharedMemoryAddress address;
  if (!address.ParseFromString(parent.Receive())) return;
  const std::shared_ptr<SharedRegion> mine = TestRegion(4096, 42);
  const auto link = SharedMemoryLink::Connect(address, TestWorker(3), mine, 1 << 20, kTestTimeout).value();
  parent.Send(std::to_string(link->session()));
  while (!parent.Receive().empty()) {
    mine->mutable_data()[0] = 43;
    parent.Send(std::to_string(link->peer().data()[0]));
  }
}

// Tells its address and stays.
void RunServer(Channel& parent) {
  TestServer server;
  parent.Send(server.address().SerializeAsString());
  parent.Receive();
}

TEST(SharedMemoryTest, ProcessesSeeEachOthersBytes) {
  ChildProcess worker(RunWorker);
  TestServer server;
  worker.channel().Send(server.address().SerializeAsString());
  const uint64_t session = std::stoull(worker.channel().Receive());
  const std::shared_ptr<const SharedRegion> theirs = server.Find(session, TestWorker(3));
  ASSERT_NE(theirs, nullptr);
  EXPECT_EQ(theirs->data()[0], 42);
  server.region().mutable_data()[0] = 99;
  worker.channel().Send("look");
  EXPECT_EQ(worker.channel().Receive(), "99");
  EXPECT_EQ(theirs->data()[0], 43);
}

TEST(SharedMemoryTest, KilledWorkersRegionGoesAwayWithItsLastReader) {
  ChildProcess worker(RunWorker);
  const std::string region_name = "rubato-test-" + std::to_string(worker.process());
  TestServer server;
  worker.channel().Send(server.address().SerializeAsString());
  const uint64_t session = std::stoull(worker.channel().Receive());
  std::shared_ptr<const SharedRegion> held = server.Find(session, TestWorker(3));
  ASSERT_NE(held, nullptr);
  worker.Kill();
  // The server takes notice of what happens in order, so of the worker's end before this connection.
  ASSERT_TRUE(server.Connect(1, TestRegion(1, 1)).ok());
  EXPECT_EQ(server.Find(session, TestWorker(3)), nullptr);
  EXPECT_EQ(held->data()[0], 42);
  EXPECT_EQ(MappingCount(region_name), 1u);
  held = nullptr;
  EXPECT_EQ(MappingCount(region_name), 0u);
}

TEST(SharedMemoryTest, KilledServersRegionStaysReadableAndNobodyConnectsAnyMore) {
  ChildProcess server(RunServer);
  v1::SharedMemoryAddress address;
  ASSERT_TRUE(address.ParseFromString(server.channel().Receive()));
  const auto connect = [&] {
    return SharedMemoryLink::Connect(address, TestWorker(1), TestRegion(4096, 1), 1 << 20, kTestTimeout);
  };
  const auto link = connect().value();
  server.Kill();
  EXPECT_EQ(link->peer().data()[0], 7);
  EXPECT_EQ(link->peer().data()[4095], 0);
  EXPECT_EQ(connect().status().code(), absl::StatusCode::kUnavailable);
}

TEST(SharedMemoryTest, KilledServerLeavesNothingBehind) {
  ChildProcess server(RunServer);
  const std::string region_name = "rubato-test-" + std::to_string(server.process());
  v1::SharedMemoryAddress address;
  ASSERT_TRUE(address.ParseFromString(server.channel().Receive()));
  EXPECT_NE(ReadFile("/proc/net/unix")->find(address.socket()), std::string::npos);
  server.Kill();
  EXPECT_EQ(ReadFile("/proc/net/unix")->find(address.socket()), std::string::npos);
  for (const char* directory : {"/dev/shm", "/tmp", "/var/tmp", "."}) {
    if (!FileExists(directory)) continue;
    const std::vector<std::string> names = ListDirectory(directory).value();
    for (const std::string& name : names) {
      EXPECT_EQ(name.find(region_name), std::string::npos) << directory;
      EXPECT_EQ(name.find(address.socket()), std::string::npos) << directory;
    }
  }
}

TEST(SharedMemoryTest, HundredLinksLeaveNoOpenFilesAndNoMappings) {
  TestServer server;
  auto last = server.Connect(0, TestRegion(4096, 1)).value();
  const size_t files = OpenFileCount();
  const size_t mappings = MappingCount(TestRegionName());
  for (uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(server.Connect(i, TestRegion(4096, 1)).ok());
  last = nullptr;
  // Once it is in, the server has taken notice of the end of all before it.
  last = server.Connect(0, TestRegion(4096, 1)).value();
  EXPECT_EQ(OpenFileCount(), files);
  EXPECT_EQ(MappingCount(TestRegionName()), mappings);
}

}  // namespace
}  // namespace rubato
