#include "worker/data/stored_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>

#include "worker/data/testing/test_files.h"

namespace rubato::worker {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSize = 3 << 20;

std::string Noise() {
  std::string bytes(kSize, 0);
  uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

std::string WriteGzip(const std::string& name, const std::string& bytes) {
  const std::string path = ::testing::TempDir() + "/" + name;
  gzFile file = gzopen(path.c_str(), "wb1");
  EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
  EXPECT_EQ(gzclose(file), Z_OK);
  return path;
}

// Everything, by Scan, and some bytes of it, by Read.
void ExpectHolds(const StoredBytes& stored, const std::string& bytes) {
  ASSERT_EQ(stored.size(), static_cast<int64_t>(bytes.size()));
  std::string seen;
  ASSERT_TRUE(stored
                  .Scan(5,
                        [&](int64_t offset, const uint8_t* data, int64_t count) {
                          EXPECT_EQ(offset, 5 + static_cast<int64_t>(seen.size()));
                          seen.append(reinterpret_cast<const char*>(data), count);
                          return absl::OkStatus();
                        })
                  .ok());
  EXPECT_TRUE(seen == bytes.substr(5));
  std::vector<uint8_t> scratch;
  for (int64_t offset : {int64_t{0}, int64_t{77}, kSize - 10}) {
    const absl::StatusOr<const uint8_t*> read = stored.Read(offset, 10, &scratch);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(*read), 10), bytes.substr(offset, 10));
  }
}

// Files were held in memory as a whole, so one that was larger than that could not be used.
TEST(StoredBytesTest, FilesLargerThanTheMemoryAreReadFromTheDisk) {
  const std::string bytes = Noise();
  for (const std::string& path : {WriteTestFile("plain", bytes), WriteGzip("compressed", bytes)}) {
    for (int64_t memory : {int64_t{0}, int64_t{1} << 20, kSize - 1, kSize, 2 * kSize}) {
      const auto stored = StoredBytes::OpenFile(path, memory, kSize);
      ASSERT_TRUE(stored.ok()) << stored.status();
      ExpectHolds(**stored, bytes);
    }
  }
}

TEST(StoredBytesTest, TooLargeFilesAreRefusedByName) {
  const std::string bytes = Noise();
  for (const std::string& path : {WriteTestFile("plain", bytes), WriteGzip("compressed", bytes)}) {
    for (int64_t memory : {int64_t{0}, 2 * kSize}) {
      const absl::Status status = StoredBytes::OpenFile(path, memory, kSize - 1).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    }
  }
}

TEST(StoredBytesTest, AFileThatBecomesShorterIsAnErrorAndNoCrash) {
  const std::string path = WriteTestFile("shrinks", Noise());
  const auto stored = StoredBytes::OpenFile(path, 0, kSize);
  ASSERT_TRUE(stored.ok());
  ASSERT_EQ(::truncate(path.c_str(), 100), 0);
  std::vector<uint8_t> scratch;
  const absl::Status status = (*stored)->Read(90, 20, &scratch).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": 10 bytes from byte 90 on; expected: 20"));
}

TEST(StoredBytesTest, ATemporaryFileThatCannotBeMadeIsNamed) {
  const std::string path = WriteGzip("compressed", Noise());
  const char* before = std::getenv("TMPDIR");
  const std::string restored = before == nullptr ? "" : before;
  ::setenv("TMPDIR", "/proc/self", 1);
  const absl::Status status = StoredBytes::OpenFile(path, 0, kSize).status();
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", restored.c_str(), 1);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/self"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("data.memory_bytes"));
}

TEST(StoredBytesTest, LeavesNoFileBehind) {
  const std::string directory = ::testing::TempDir() + "/temporary";
  std::filesystem::create_directory(directory);
  const char* before = std::getenv("TMPDIR");
  const std::string restored = before == nullptr ? "" : before;
  ::setenv("TMPDIR", directory.c_str(), 1);
  const auto stored = StoredBytes::OpenFile(WriteGzip("compressed", Noise()), 0, kSize);
  before == nullptr ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", restored.c_str(), 1);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

}  // namespace
}  // namespace rubato::worker
