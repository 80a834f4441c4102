#include "common/shared_memory/region.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string>
#include <utility>

#include "common/shared_memory/testing/peers.h"

namespace rubato {
namespace {

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

// As a peer gets it.
FileDescriptor Received(const SharedRegion& region) { return FileDescriptor(dup(region.descriptor())); }

std::shared_ptr<const SharedRegion> Mapped(const SharedRegion& region) {
  return SharedRegion::Map(Received(region), region.size()).value();
}

void ExpectRefused(FileDescriptor descriptor, size_t bytes_max, const std::string& reason) {
  const absl::Status status = SharedRegion::Map(std::move(descriptor), bytes_max).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(std::string(status.message()).find(reason), std::string::npos) << status;
}

TEST(SharedRegionTest, StartsAsZerosAndShowsWritesToItsPeers) {
  const std::shared_ptr<SharedRegion> mine = SharedRegion::Create("test", 10000).value();
  const std::shared_ptr<const SharedRegion> theirs = Mapped(*mine);
  ASSERT_EQ(theirs->size(), 10000u);
  EXPECT_NE(theirs->data(), mine->data());
  for (size_t i = 0; i < theirs->size(); ++i) ASSERT_EQ(theirs->data()[i], 0);
  mine->mutable_data()[9999] = 5;
  EXPECT_EQ(theirs->data()[9999], 5);
}

// A client's memory, which the client has mapped.
struct ClientMemory {
  explicit ClientMemory(size_t bytes) : memfd(memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes(bytes) {
    EXPECT_EQ(ftruncate(memfd.get(), static_cast<off_t>(bytes)), 0);
    data = static_cast<uint8_t*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0));
  }
  ~ClientMemory() { munmap(data, bytes); }

  FileDescriptor memfd;
  const size_t bytes;
  uint8_t* data;
};

TEST(SharedRegionTest, AClientsMemoryIsWrittenByTheClientAndByItsSidecarAndByNobodyElse) {
  ClientMemory client(8192);
  const std::shared_ptr<SharedRegion> mine = SharedRegion::Adopt(std::move(client.memfd), 8192).value();
  const std::shared_ptr<const SharedRegion> theirs = Mapped(*mine);
  client.data[100] = 7;
  EXPECT_EQ(theirs->data()[100], 7);
  mine->mutable_data()[8191] = 8;
  EXPECT_EQ(client.data[8191], 8);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mine->descriptor(), 0), MAP_FAILED);
  EXPECT_NE(ftruncate(mine->descriptor(), 1), 0);
}

TEST(SharedRegionTest, AClientsMemoryIsRefusedWhereItHasAnotherSizeOrIsSealed) {
  ClientMemory client(8192);
  const absl::Status size = SharedRegion::Adopt(FileDescriptor(dup(client.memfd.get())), 4096).status();
  EXPECT_EQ(size.message(), "the client's shared memory has 8192 bytes, not the 4096 of its model");
  ASSERT_EQ(fcntl(client.memfd.get(), F_ADD_SEALS, F_SEAL_SEAL), 0);
  EXPECT_EQ(SharedRegion::Adopt(std::move(client.memfd), 8192).status().message(),
            "the client's shared memory takes no seals");
}

TEST(SharedRegionTest, PeersMemoryOutlivesItsCreator) {
  std::shared_ptr<SharedRegion> mine = TestRegion(100, 3);
  const std::shared_ptr<const SharedRegion> theirs = Mapped(*mine);
  mine = nullptr;
  EXPECT_EQ(theirs->data()[0], 3);
}

TEST(SharedRegionTest, PeerCannotMakeItWritable) {
  const std::shared_ptr<SharedRegion> mine = TestRegion(4096, 1);
  const std::shared_ptr<const SharedRegion> theirs = Mapped(*mine);
  EXPECT_NE(mprotect(const_cast<uint8_t*>(theirs->data()), 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mine->descriptor(), 0), MAP_FAILED);
  EXPECT_LT(write(mine->descriptor(), "x", 1), 0);
  EXPECT_NE(ftruncate(mine->descriptor(), 1), 0);
  EXPECT_LT(fcntl(mine->descriptor(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(SharedRegionTest, SealsHoldForADescriptorOpenedAgainForWriting) {
  const std::shared_ptr<SharedRegion> mine = TestRegion(4096, 1);
  const std::string path = "/proc/self/fd/" + std::to_string(mine->descriptor());
  const FileDescriptor again(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!again.open()) GTEST_SKIP() << "the file's permissions refuse it already";
  EXPECT_NE(ftruncate(again.get(), 1), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(ftruncate(again.get(), 8192), 0);
  EXPECT_EQ(errno, EPERM);
  if ((fcntl(again.get(), F_GET_SEALS) & F_SEAL_FUTURE_WRITE) == 0) GTEST_SKIP() << "this kernel has no such seal";
  EXPECT_LT(write(again.get(), "x", 1), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
}

TEST(SharedRegionTest, MakerGoesOnWritingAfterSealing) {
  const std::shared_ptr<SharedRegion> mine = TestRegion(4096, 1);
  mine->mutable_data()[4095] = 9;
  EXPECT_EQ(mine->data()[4095], 9);
}

TEST(SharedRegionTest, RefusesAPeersMemoryThatItCannotTrust) {
  ExpectRefused(TestMemfd(4096, 0), 4096, "not sealed against shrinking");
  ExpectRefused(TestMemfd(4096, F_SEAL_GROW), 4096, "not sealed against shrinking");
  ExpectRefused(TestMemfd(0, F_SEAL_SHRINK), 4096, "is empty");
  ExpectRefused(TestMemfd(4097, F_SEAL_SHRINK), 4096, "has 4097 bytes, more than the 4096 allowed");
  ExpectRefused(FileDescriptor(open("/proc/self/maps", O_RDONLY)), 4096, "not of shared memory");
  ExpectRefused(FileDescriptor(open("/dev/null", O_RDWR)), 4096, "not of shared memory");
  ExpectRefused(FileDescriptor(), 4096, "not of shared memory");
}

TEST(SharedRegionTest, TakesMemoryUpToTheLimit) {
  EXPECT_EQ(SharedRegion::Map(TestMemfd(4096, F_SEAL_SHRINK), 4096).value()->size(), 4096u);
}

TEST(SharedRegionTest, RefusesSizesThatCannotBe) {
  EXPECT_EQ(SharedRegion::Create("test", 0).status().code(), absl::StatusCode::kInvalidArgument);
  for (size_t bytes : {size_t{1} << 62, std::numeric_limits<size_t>::max()}) {
    const absl::Status status = SharedRegion::Create("test", bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_NE(std::string(status.message()).find(std::to_string(bytes)), std::string::npos) << status;
  }
}

TEST(SharedRegionTest, TakesAnyName) {
  EXPECT_TRUE(SharedRegion::Create("", 1).ok());
  EXPECT_TRUE(SharedRegion::Create(std::string(1000, 'n'), 1).ok());
}

TEST(SharedRegionTest, FindsOnlyWhatIsAllInside) {
  const std::shared_ptr<SharedRegion> region = TestRegion(100, 1);
  EXPECT_EQ(region->Find(0, 100), region->data());
  EXPECT_EQ(region->Find(99, 1), region->data() + 99);
  EXPECT_EQ(region->Find(100, 0), region->data() + 100);
  EXPECT_EQ(region->Find(0, 101), nullptr);
  EXPECT_EQ(region->Find(100, 1), nullptr);
  EXPECT_EQ(region->Find(101, 0), nullptr);
  EXPECT_EQ(region->Find(kHuge, 1), nullptr);
  EXPECT_EQ(region->Find(1, kHuge), nullptr);
  EXPECT_EQ(region->Find(kHuge, kHuge), nullptr);
  EXPECT_EQ(region->Find(kHuge - 49, 100), nullptr);
}

TEST(SharedRegionTest, SaysWhereMemoryIs) {
  const std::shared_ptr<SharedRegion> region = TestRegion(100, 1);
  EXPECT_EQ(region->OffsetOf(region->data(), 100), 0u);
  EXPECT_EQ(region->OffsetOf(region->data() + 64, 36), 64u);
  EXPECT_EQ(region->OffsetOf(region->data() + 64, 37), std::nullopt);
  EXPECT_EQ(region->OffsetOf(region->data() + 64, std::numeric_limits<size_t>::max()), std::nullopt);
  EXPECT_EQ(region->OffsetOf(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(region->data()) - 1), 1),
            std::nullopt);
  const int elsewhere = 0;
  EXPECT_EQ(region->OffsetOf(&elsewhere, sizeof(elsewhere)), std::nullopt);
  EXPECT_EQ(region->OffsetOf(nullptr, 0), std::nullopt);
}

TEST(SharedRegionTest, LeavesNeitherMappingsNorOpenFiles) {
  const size_t files = OpenFileCount();
  {
    const std::shared_ptr<SharedRegion> mine = TestRegion(4096, 1);
    const std::shared_ptr<const SharedRegion> theirs = Mapped(*mine);
    EXPECT_EQ(MappingCount(TestRegionName()), 2u);
    EXPECT_EQ(theirs->descriptor(), -1);
    ExpectRefused(Received(*mine), 1, "more than the 1 allowed");
  }
  EXPECT_EQ(MappingCount(TestRegionName()), 0u);
  EXPECT_EQ(OpenFileCount(), files);
}

}  // namespace
}  // namespace rubato
