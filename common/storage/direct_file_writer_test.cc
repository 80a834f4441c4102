#include "common/storage/direct_file_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
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

absl::Status WriteOne(DirectFileWriter& writer, const char* data, size_t bytes) {
  const absl::string_view piece(data, bytes);
  return writer.Write({&piece, 1});
}

// Writes `contents` in pieces of this many bytes.
absl::Status WritePieces(const std::string& path, const std::string& contents, size_t piece) {
  absl::StatusOr<std::unique_ptr<DirectFileWriter>> writer = DirectFileWriter::Create(path);
  if (!writer.ok()) return writer.status();
  for (size_t at = 0; at < contents.size(); at += piece) {
    absl::Status status = WriteOne(**writer, contents.data() + at, std::min(piece, contents.size() - at));
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
    EXPECT_TRUE(WriteOne(**writer, contents.data(), contents.size()).ok());
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
      ASSERT_TRUE(WriteOne(**writer, expected.data(), before).ok());
      for (size_t at : {size_t{0}, kBytes, kDiskBlock}) {
        expected.append(memory.get() + at, std::min(bytes, kBytes));
        ASSERT_TRUE(WriteOne(**writer, memory.get() + at, std::min(bytes, kBytes)).ok());
      }
      EXPECT_EQ((*writer)->bytes(), expected.size());
      ASSERT_TRUE((*writer)->Finish().ok());
      EXPECT_TRUE(*ReadFile(path_) == expected) << bytes << " bytes after " << before;
    }
  }
  EXPECT_TRUE(RemoveFile(path_).ok());
}

// Of a call all pieces that can be written from where they are, and those between them that cannot.
TEST_P(DirectFileWriterTest, PiecesOfOneCallFollowEachOther) {
  constexpr size_t kLarge = size_t{256} << 10, kMost = 2000;
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char*>(std::aligned_alloc(kDiskBlock, 4 * kLarge)), &std::free);
  const std::string contents = Contents(4 * kLarge);
  contents.copy(memory.get(), 4 * kLarge);
  const absl::string_view all(memory.get(), 4 * kLarge);
  const absl::string_view large = all.substr(kLarge, kLarge), ragged = all.substr(kDiskBlock, kLarge + 100),
                          padding = all.substr(7, kDiskBlock - 100), small = all.substr(10, 5000), none;
  const std::vector<absl::string_view> many(kMost, all.substr(kLarge, kLargeArrayBytes));
  for (const std::vector<absl::string_view>& pieces : std::initializer_list<std::vector<absl::string_view>>{
           {},
           {none},
           {large, large, all, large},
           {ragged, padding, large, large},
           {small, large, all.substr(0, 3 * kDiskBlock - 5000), large, large},
           {large, small, large},
           {large, none, large},
           many}) {
    auto writer = DirectFileWriter::Create(path_);
    ASSERT_TRUE(writer.ok()) << writer.status();
    std::string expected;
    for (int call = 0; call < 2; ++call) {
      ASSERT_TRUE((*writer)->Write(pieces).ok());
      for (const absl::string_view piece : pieces) absl::StrAppend(&expected, piece);
      EXPECT_EQ((*writer)->bytes(), expected.size());
    }
    ASSERT_TRUE((*writer)->Finish().ok());
    EXPECT_TRUE(*ReadFile(path_) == expected) << pieces.size() << " pieces";
  }
  EXPECT_TRUE(RemoveFile(path_).ok());
}

TEST_P(DirectFileWriterTest, AfterAnErrorBytesSayWhichPiecesWereTaken) {
  constexpr size_t kLarge = size_t{1} << 20;
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char*>(std::aligned_alloc(kDiskBlock, 2 * kLarge)), &std::free);
  const std::string contents = Contents(2 * kLarge);
  contents.copy(memory.get(), 2 * kLarge);
  const absl::string_view first(memory.get(), kLarge), second(memory.get() + kLarge, kLarge);
  // What follows "small" is copied, and more than the writer's buffer has room for.
  const std::vector<absl::string_view> pieces = {first, "small", second, first, second, first, second, first};
  const std::string expected = absl::StrJoin(pieces, "");
  auto writer = DirectFileWriter::Create(path_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  std::optional<FileSizeLimit> limit(kLarge / 2);
  EXPECT_FALSE((*writer)->Write(pieces).ok());
  EXPECT_EQ((*writer)->bytes(), 0u);
  limit.reset();
  limit.emplace(kLarge + 100);
  EXPECT_FALSE((*writer)->Write(pieces).ok());
  const uint64_t taken = (*writer)->bytes();
  EXPECT_GT(taken, kLarge);
  EXPECT_LT(taken, expected.size());
  limit.reset();
  ASSERT_TRUE(WriteOne(**writer, expected.data() + taken, expected.size() - taken).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_TRUE(*ReadFile(path_) == expected);
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
        const absl::Status status = WriteOne(**writer, memory.get() + at, std::min(piece, kBytes - at));
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
  EXPECT_TRUE(absl::IsFailedPrecondition(WriteOne(**writer, "a", 1)));
  EXPECT_TRUE(absl::IsFailedPrecondition((*writer)->Finish()));
}

}  // namespace
}  // namespace rubato
