#include "common/part_copies/part_peers.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/part_copies/part_service.h"
#include "common/part_copies/part_store.h"
#include "common/storage/checkpoint.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

constexpr uint64_t kJob = 77;
constexpr uint64_t kCut = 3;

v1::TaskId Task(v1::TaskId::Role role, uint32_t index) {
  v1::TaskId task;
  task.set_role(role);
  task.set_index(index);
  return task;
}

// Their indices.
std::vector<uint32_t> Chosen(const std::vector<std::string>& hosts, const v1::TaskId& task, size_t count) {
  std::vector<v1::ServerInfo> servers;
  for (size_t i = 0; i < hosts.size(); ++i) {
    v1::ServerInfo& server = servers.emplace_back();
    *server.mutable_task() = Task(v1::TaskId::SERVER, static_cast<uint32_t>(i));
    server.set_address(absl::StrCat(hosts[i], ":", 4000 + i));
  }
  std::vector<uint32_t> chosen;
  for (const v1::ServerInfo& server : ServersForCopies(servers, task, count)) chosen.push_back(server.task().index());
  return chosen;
}

using Indices = std::vector<uint32_t>;

TEST(ServersForCopiesTest, AServersAreTheNextOnesOnOtherHosts) {
  const std::vector<std::string> hosts = {"a", "a", "b", "b", "c"};
  EXPECT_EQ(Chosen(hosts, Task(v1::TaskId::SERVER, 0), 1), Indices({2}));
  EXPECT_EQ(Chosen(hosts, Task(v1::TaskId::SERVER, 1), 1), Indices({2}));
  EXPECT_EQ(Chosen(hosts, Task(v1::TaskId::SERVER, 2), 1), Indices({4}));
  EXPECT_EQ(Chosen(hosts, Task(v1::TaskId::SERVER, 4), 1), Indices({0}));
  EXPECT_EQ(Chosen(hosts, Task(v1::TaskId::SERVER, 4), 2), Indices({0, 2}));
  // As there are no more hosts.
  EXPECT_EQ(Chosen(hosts, Task(v1::TaskId::SERVER, 4), 3), Indices({0, 2, 1}));
  EXPECT_EQ(Chosen({"a", "a"}, Task(v1::TaskId::SERVER, 0), 1), Indices({1}));
  EXPECT_EQ(Chosen({"a"}, Task(v1::TaskId::SERVER, 0), 1), Indices());
}

TEST(ServersForCopiesTest, WorkersAreSpread) {
  const std::vector<std::string> hosts = {"a", "b", "c"};
  EXPECT_EQ(Chosen(hosts, Task(v1::TaskId::WORKER, 0), 2), Indices({0, 1}));
  EXPECT_EQ(Chosen(hosts, Task(v1::TaskId::WORKER, 1), 2), Indices({1, 2}));
  EXPECT_EQ(Chosen(hosts, Task(v1::TaskId::WORKER, 5), 2), Indices({2, 0}));
  EXPECT_EQ(Chosen(hosts, Task(v1::TaskId::WORKER, 0), 9).size(), 3u);
}

// Three servers, each with a disk of its own.
class PartPeersTest : public testing::Test {
 protected:
  struct Host {
    std::string directory;
    std::unique_ptr<PartStore> store;
    std::unique_ptr<PartService> service;
    std::unique_ptr<grpc::Server> server;
  };

  PartPeersTest() {
    const std::string base =
        JoinPath(testing::TempDir(),
                 absl::StrCat("part_peers_test_", testing::UnitTest::GetInstance()->current_test_info()->name()));
    for (uint32_t i = 0; i < 3; ++i) {
      Host& host = hosts_.emplace_back();
      host.directory = JoinPath(base, absl::StrCat(i));
      host.store = std::make_unique<PartStore>(
          PartStore::Options{.directory = host.directory, .task = Task(v1::TaskId::SERVER, i), .clock = &clock_});
      host.store->SetJob(kJob);
      host.service = std::make_unique<PartService>(host.store.get());
      int port = 0;
      grpc::ServerBuilder builder;
      builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
      builder.SetMaxReceiveMessageSize(-1);
      builder.RegisterService(host.service.get());
      host.server = builder.BuildAndStart();
      v1::ServerInfo& info = servers_.emplace_back();
      *info.mutable_task() = Task(v1::TaskId::SERVER, i);
      info.set_address(absl::StrCat("127.0.0.1:", port));
    }
  }

  PartPeers Peers(uint32_t index, size_t count = 1) {
    return PartPeers({.directory = hosts_[index].directory,
                      .task = Task(v1::TaskId::SERVER, index),
                      .job_fingerprint = kJob,
                      .servers = servers_,
                      .count = count,
                      .timeout = absl::Seconds(1),
                      .clock = &clock_,
                      .log = &log_});
  }

  // `elements` floats, as server `index` writes them.
  void WritePart(uint32_t index, int64_t elements = 5'000'000) {
    auto writer = CheckpointWriter::Create(DirectoryOf(index), Task(v1::TaskId::SERVER, index));
    ASSERT_TRUE(writer.ok()) << writer.status();
    if (elements > 0) {
      std::vector<float> values(static_cast<size_t>(elements));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
      CheckpointChunk chunk;
      chunk.record.set_tensor("a");
      chunk.record.add_shape(elements);
      chunk.record.set_length(elements);
      chunk.values = values.data();
      ASSERT_TRUE((*writer)->Add(chunk).ok());
    }
    v1::CheckpointManifest manifest;
    manifest.set_job_name("job");
    manifest.set_servers(3);
    manifest.mutable_cut()->set_id(kCut);
    manifest.mutable_cut()->set_name("step5");
    ASSERT_TRUE((*writer)->Finish(manifest).ok());
  }
  std::string DirectoryOf(uint32_t host) { return JoinPath(hosts_[host].directory, "step5"); }
  bool Has(uint32_t host, uint32_t part) {
    return ReadCheckpointPart(DirectoryOf(host), v1::TaskId::SERVER, part, kCut).ok();
  }
  static absl::Status Fetch(const PartPeers& peers, uint32_t part, bool wanted = true) {
    return peers.Fetch(
        "step5", kCut, v1::TaskId::SERVER, part, [wanted](const v1::CheckpointManifest&) { return wanted; },
        [] { return false; });
  }

  RealClock clock_;
  Logger log_{"server", &clock_};
  std::vector<Host> hosts_;
  std::vector<v1::ServerInfo> servers_;
};

TEST_F(PartPeersTest, APartIsKeptByOthersAndComesBackFromThem) {
  WritePart(0);
  const PartPeers peers = Peers(0, 2);
  ASSERT_TRUE(peers.Send("step5", kCut, [] { return false; }).ok());
  EXPECT_TRUE(Has(1, 0));
  EXPECT_TRUE(Has(2, 0));
  // The disk of host 0, and then that of host 1, is lost.
  for (const uint32_t lost : {0u, 1u}) {
    const std::vector<std::string> names = *ListDirectory(DirectoryOf(lost));
    for (const std::string& name : names) {
      ASSERT_TRUE(RemoveFile(JoinPath(DirectoryOf(lost), name)).ok());
    }
  }
  ASSERT_TRUE(Fetch(peers, 0, /*wanted=*/false).ok());
  EXPECT_FALSE(Has(0, 0));
  const absl::Status fetched = Fetch(peers, 0);
  ASSERT_TRUE(fetched.ok()) << fetched;
  EXPECT_EQ(*ReadFile(JoinPath(DirectoryOf(0), "server-0.data")), *ReadFile(JoinPath(DirectoryOf(2), "server-0.data")));
}

TEST_F(PartPeersTest, APartWithoutDataHasCopiesToo) {
  WritePart(1, 0);
  ASSERT_TRUE(Peers(1).Send("step5", kCut, [] { return false; }).ok());
  EXPECT_TRUE(Has(2, 1));
}

TEST_F(PartPeersTest, SaysWhoDoesNotKeepACopy) {
  WritePart(0);
  hosts_[1].server->Shutdown();
  const absl::Status status = Peers(0).Send("step5", kCut, [] { return false; });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("no copy on server 1"), absl::string_view::npos) << status;
}

TEST_F(PartPeersTest, NobodyHasIt) {
  EXPECT_EQ(Fetch(Peers(0), 1).code(), absl::StatusCode::kNotFound);
  // Perhaps the one has it that does not answer.
  hosts_[2].server->Shutdown();
  const absl::Status status = Fetch(Peers(0), 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("server 2"), absl::string_view::npos) << status;
}

TEST_F(PartPeersTest, WaitsForAServerThatIsInNoJobYet) {
  WritePart(1, 100);
  hosts_[1].store = nullptr;
  hosts_[1].server->Shutdown();
  hosts_[1].store = std::make_unique<PartStore>(
      PartStore::Options{.directory = hosts_[1].directory, .task = Task(v1::TaskId::SERVER, 1), .clock = &clock_});
  hosts_[1].service = std::make_unique<PartService>(hosts_[1].store.get());
  grpc::ServerBuilder builder;
  builder.AddListeningPort(servers_[1].address(), grpc::InsecureServerCredentials());
  builder.RegisterService(hosts_[1].service.get());
  hosts_[1].server = builder.BuildAndStart();
  ASSERT_NE(hosts_[1].server, nullptr);
  std::thread later([this] {
    clock_.Sleep(absl::Milliseconds(300));
    hosts_[1].store->SetJob(kJob);
  });
  EXPECT_TRUE(Fetch(Peers(0), 1).ok());
  later.join();
  EXPECT_TRUE(Has(0, 1));
}

TEST_F(PartPeersTest, EndsWhenItIsCancelled) {
  WritePart(0);
  const PartPeers peers = Peers(0);
  EXPECT_EQ(peers.Send("step5", kCut, [] { return true; }).code(), absl::StatusCode::kCancelled);
  int asked = 0;
  EXPECT_EQ(peers.Send("step5", kCut, [&asked] { return ++asked > 3; }).code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(Has(1, 0));
  EXPECT_EQ(peers
                .Fetch(
                    "step5", kCut, v1::TaskId::SERVER, 1, [](const v1::CheckpointManifest&) { return true; },
                    [] { return true; })
                .code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace rubato
