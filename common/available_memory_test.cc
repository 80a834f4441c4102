#include "common/available_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace rubato {
namespace {

namespace fs = std::filesystem;

class AvailableMemoryTest : public ::testing::Test {
 protected:
  AvailableMemoryTest()
      : root_(fs::path(::testing::TempDir()) / ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
    Write("proc/meminfo", "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    8000 kB\n");
    Write("proc/self/cgroup", "4:memory:/elsewhere\n0::/jobs/worker\n");
  }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::optional<int64_t> Available() const { return AvailableMemoryBytes(root_.string()); }

  const fs::path root_;
};

TEST_F(AvailableMemoryTest, IsWhatTheMachineHasAvailable) {
  EXPECT_EQ(Available(), 8000 * 1024);
  Write("sys/fs/cgroup/jobs/worker/memory.max", "max\n");
  Write("sys/fs/cgroup/jobs/worker/memory.current", "4096\n");
  EXPECT_EQ(Available(), 8000 * 1024);
}

TEST_F(AvailableMemoryTest, IsWhatTheGroupsLimitLeaves) {
  Write("sys/fs/cgroup/jobs/worker/memory.max", "5000000\n");
  Write("sys/fs/cgroup/jobs/worker/memory.current", "3000000\n");
  EXPECT_EQ(Available(), 2000000);
  // Files that nobody has asked for again make room.
  Write("sys/fs/cgroup/jobs/worker/memory.stat", "anon 1\nactive_file 70\ninactive_file 500000\n");
  EXPECT_EQ(Available(), 2500000);
}

TEST_F(AvailableMemoryTest, ALimitBindsTheGroupsInside) {
  for (const char* group : {"jobs/worker", "jobs", "."}) {
    const std::string folder = std::string("sys/fs/cgroup/") + group;
    Write(folder + "/memory.max", group == std::string("jobs") ? "1000000\n" : "2000000\n");
    Write(folder + "/memory.current", "400000\n");
  }
  EXPECT_EQ(Available(), 600000);
}

TEST_F(AvailableMemoryTest, AContainersOwnGroupIsTheRoot) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "1000000\n");
  Write("sys/fs/cgroup/memory.current", "1200000\n");
  EXPECT_EQ(Available(), 0);
}

TEST_F(AvailableMemoryTest, IsUnknownWhereTheSystemDoesNotSay) {
  fs::remove(root_ / "proc/meminfo");
  EXPECT_EQ(Available(), std::nullopt);
}

TEST(AvailableMemoryOfThisMachineTest, ThereIsSome) { EXPECT_GT(AvailableMemoryBytes().value_or(0), 0); }

}  // namespace
}  // namespace rubato
