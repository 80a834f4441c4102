#include "common/storage/direct_file_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "common/array_alignment.h"
#include "common/storage/file.h"
#include "common/storage/testing/file_size_limit.h"

namespace rubato {
namespace {

std::string Contents(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + (i >> 12));
  return text;
}

// Writes `contents` in pieces of this many bytes.
absl::Status WritePieces(const std::string& path, const std::string& contents, size_t piece) {
  absl::StatusOr<std::unique_ptr<DirectFileWriter>> writer = DirectFileWriter::Create(path);
  if (!writer.ok()) return writer.status();
  for (size_t at = 0; at < contents.size(); at += piece) {
    absl::Status status = (*writer)->Write(contents.data() + at, std::min(piece, contents.size() - at));
    if (!status.ok()) return status;
  }
  EXPECT_EQ((*writer)->bytes(), contents.size());
  return (*writer)->Finish();
}

class DirectFileWriterTest : public testing::TestWithParam<std::string> {
 protected:
  // A writer of these, which found the disk full at the end.
  std::unique_ptr<DirectFileWriter> WriteWithoutEnd(const std::string& contents) {
    auto writer = DirectFileWriter::Create(path_);
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE((*writer)->Write(contents.data(), contents.size()).ok());
    const FileSizeLimit limit(4096);
    EXPECT_FALSE((*writer)->Finish().ok());
    return *std::move(writer);
  }

  const std::string path_ = JoinPath(GetParam(), "direct_file_writer_test");
};

TEST_P(DirectFileWriterTest, WritesEveryByteWhateverTheSizes) {
  constexpr size_t kMiB = size_t{1} << 20;
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, 4 * kMiB, 4 * kMiB + 1,
                       8 * kMiB + 4096, 9 * kMiB + 17}) {
    const std::string contents = Contents(bytes);
    for (size_t piece : {size_t{1000}, 5 * kMiB}) {
      const absl::Status status = WritePieces(path_, contents, piece);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_TRUE(*ReadFile(path_) == contents) << bytes << " bytes in pieces of " << piece;
    }
  }
  EXPECT_TRUE(RemoveFile(path_).ok());
}

TEST_P(DirectFileWriterTest, WritesAlignedMemoryFromWhereItIs) {
  constexpr size_t kBytes = size_t{300} << 10;
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char*>(std::aligned_alloc(kDiskBlock, 2 * kBytes)), &std::free);
  const std::string contents = Contents(2 * kBytes);
  contents.copy(memory.get(), 2 * kBytes);
  for (size_t before : {size_t{0}, kDiskBlock, 3 * kDiskBlock, size_t{100}}) {
    for (size_t bytes : {kBytes, kBytes + 17, kBytes - 1, size_t{64} << 10, size_t{5000}}) {
      absl::StatusOr<std::unique_ptr<DirectFileWriter>> writer = DirectFileWriter::Create(path_);
      ASSERT_TRUE(writer.ok()) << writer.status();
      std::string expected = contents.substr(1, before);
      ASSERT_TRUE((*writer)->Write(expected.data(), before).ok());
      for (size_t at : {size_t{0}, kBytes, kDiskBlock}) {
        expected.append(memory.get() + at, std::min(bytes, kBytes));
        ASSERT_TRUE((*writer)->Write(memory.get() + at, std::min(bytes, kBytes)).ok());
      }
      EXPECT_EQ((*writer)->bytes(), expected.size());
      ASSERT_TRUE((*writer)->Finish().ok());
      EXPECT_TRUE(*ReadFile(path_) == expected) << bytes << " bytes after " << before;
    }
  }
  EXPECT_TRUE(RemoveFile(path_).ok());
}

TEST_P(DirectFileWriterTest, GoesOnAfterAnErrorWhereItWas) {
  constexpr size_t kBytes = size_t{9} << 20;
  const std::unique_ptr<char, decltype(&std::free)> memory(static_cast<char*>(std::aligned_alloc(kDiskBlock, kBytes)),
                                                           &std::free);
  const std::string contents = Contents(kBytes);
  contents.copy(memory.get(), kBytes);
  // By way of the buffer, and from where it is; of pieces that are whole blocks, and of others.
  for (size_t from : {size_t{1}, size_t{0}}) {
    for (size_t piece : {size_t{1} << 20, size_t{100'001}, size_t{5} << 20}) {
      auto writer = DirectFileWriter::Create(path_);
      ASSERT_TRUE(writer.ok()) << writer.status();
      int errors = 0;
      std::optional<FileSizeLimit> limit((5 << 20) + 8192);
      for (size_t at = from; at < kBytes; at = from + (*writer)->bytes()) {
        const absl::Status status = (*writer)->Write(memory.get() + at, std::min(piece, kBytes - at));
        if (status.ok()) continue;
        EXPECT_NE(status.message().find("File too large"), absl::string_view::npos) << status;
        if (++errors == 2) limit.reset();
      }
      EXPECT_EQ(errors, 2);
      EXPECT_FALSE((*writer)->is_lost());
      ASSERT_TRUE((*writer)->Finish().ok());
      EXPECT_TRUE(*ReadFile(path_) == contents.substr(from)) << "pieces of " << piece << " from " << from;
    }
  }
  EXPECT_TRUE(RemoveFile(path_).ok());
}

TEST_P(DirectFileWriterTest, TheEndCanBeTriedAgain) {
  const std::string contents = Contents(10'000);
  const auto writer = WriteWithoutEnd(contents);
  EXPECT_FALSE(writer->is_lost());
  const absl::Status status = writer->Finish();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(*ReadFile(path_) == contents);
  EXPECT_TRUE(RemoveFile(path_).ok());
}

TEST_P(DirectFileWriterTest, IsLostIfSomebodyRemovesTheFileAfterAnError) {
  const std::string contents = Contents(10'000);
  const auto writer = WriteWithoutEnd(contents);
  ASSERT_TRUE(RemoveFile(path_).ok());
  EXPECT_TRUE(absl::IsNotFound(writer->Finish()));
  EXPECT_TRUE(writer->is_lost());
  EXPECT_TRUE(absl::IsDataLoss(writer->Finish()));
}

// The second has no disk under it.
INSTANTIATE_TEST_SUITE_P(Folders, DirectFileWriterTest, testing::Values(testing::TempDir(), "/dev/shm"));

TEST(DirectFileWriterErrorsTest, SayWhatIsFull) {
  const absl::Status status = WritePieces("/dev/full", Contents(9 << 20), 1 << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(status.message().substr(0, 23), "cannot write /dev/full:") << status;
}

TEST(DirectFileWriterErrorsTest, SayWhatCannotBeCreated) {
  const absl::Status status = DirectFileWriter::Create("/no such folder/file").status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(status.message().substr(0, 35), "cannot create /no such folder/file:") << status;
}

TEST(DirectFileWriterErrorsTest, NothingIsWrittenAfterTheEnd) {
  const std::string path = JoinPath(testing::TempDir(), "finished");
  auto writer = DirectFileWriter::Create(path);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*writer)->Write("a", 1)));
  EXPECT_TRUE(absl::IsFailedPrecondition((*writer)->Finish()));
}

}  // namespace
}  // namespace rubato
