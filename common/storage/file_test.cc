#include "common/storage/file.h"

#include <gtest/gtest.h>

#include <string>

namespace rubato {
namespace {

using testing::TempDir;

// A new empty directory for each test.
std::string Fresh(const std::string& name) {
  const std::string path = JoinPath(TempDir(), "file_test_" + name);
  EXPECT_TRUE(MakeDirectories(path).ok());
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(path);
  for (const std::string& entry : *names) EXPECT_TRUE(RemoveFile(JoinPath(path, entry)).ok());
  return path;
}

TEST(FileTest, WritesAndReadsBack) {
  const std::string path = JoinPath(Fresh("write"), "a");
  const std::string contents("zero \0 inside", 13);
  ASSERT_TRUE(WriteFileAtomically(path, contents).ok());
  EXPECT_EQ(*ReadFile(path), contents);
  EXPECT_EQ(*FileBytes(path), 13u);
  ASSERT_TRUE(WriteFileAtomically(path, "").ok());
  EXPECT_EQ(*ReadFile(path), "");
}

TEST(FileTest, AtomicWriteLeavesNoTemporaryFile) {
  const std::string directory = Fresh("atomic");
  ASSERT_TRUE(WriteFileAtomically(JoinPath(directory, "a"), "x").ok());
  EXPECT_EQ(*ListDirectory(directory), std::vector<std::string>{"a"});
}

TEST(FileTest, ErrorsNamePathAndReason) {
  const absl::Status missing = ReadFile("/no/such/file").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.message().find("/no/such/file"), absl::string_view::npos) << missing;
  EXPECT_NE(missing.message().find("No such file"), absl::string_view::npos) << missing;
  EXPECT_EQ(ListDirectory("/no/such/directory").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(WriteFileAtomically("/no/such/file", "x").code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadFile(TempDir()).ok());
}

TEST(FileTest, MakesNestedDirectoriesAndToleratesExistingOnes) {
  const std::string directory = Fresh("nested");
  const std::string nested = JoinPath(directory, "b/c");
  EXPECT_TRUE(MakeDirectories(nested).ok());
  EXPECT_TRUE(MakeDirectories(nested).ok());
  EXPECT_TRUE(FileExists(nested));
  ASSERT_TRUE(WriteFileAtomically(JoinPath(nested, "file"), "x").ok());
  EXPECT_FALSE(MakeDirectories(JoinPath(nested, "file")).ok());
  EXPECT_TRUE(RemoveFile(JoinPath(nested, "file")).ok());
  EXPECT_TRUE(RemoveFile(JoinPath(nested, "file")).ok());
}

TEST(FileTest, MakesDirectoriesOfEveryWayToWriteAPath) {
  const std::string directory = Fresh("ways");
  for (const char* path : {"a/b/", "c//d", "./e/../f", "g/."}) {
    EXPECT_TRUE(MakeDirectories(JoinPath(directory, path)).ok()) << path;
    EXPECT_TRUE(ListDirectory(JoinPath(directory, path)).ok()) << path;
  }
  EXPECT_EQ(MakeDirectories("").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(MakeDirectories("/proc/none/such").code(), absl::StatusCode::kNotFound);
}

TEST(FileTest, TellsTheDirectoryOfAPath) {
  EXPECT_EQ(DirectoryOf("a/b"), "a");
  EXPECT_EQ(DirectoryOf("/a"), "/");
  EXPECT_EQ(DirectoryOf("a"), ".");
}

TEST(FileTest, JoinsWithOneSlash) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
}

TEST(FileWriterTest, BuffersAnyMixOfSizes) {
  const std::string path = JoinPath(Fresh("buffer"), "a");
  auto file = FileWriter::Create(path, FileWriter::kReplace);
  ASSERT_TRUE(file.ok());
  std::string expected;
  for (size_t bytes : {size_t{1}, size_t{300000}, size_t{7}, size_t{262144}, size_t{0}, size_t{262137}, size_t{9}}) {
    const std::string part(bytes, static_cast<char>('a' + bytes % 26));
    ASSERT_TRUE((*file)->Write(part).ok());
    expected += part;
  }
  EXPECT_EQ((*file)->bytes(), expected.size());
  ASSERT_TRUE((*file)->Close().ok());
  EXPECT_EQ(*ReadFile(path), expected);
  EXPECT_EQ((*file)->Write("more").code(), absl::StatusCode::kFailedPrecondition);
}

TEST(FileWriterTest, NewFileIsNotToReplaceAnother) {
  const std::string path = JoinPath(Fresh("new"), "a");
  ASSERT_TRUE(WriteFileAtomically(path, "kept").ok());
  EXPECT_EQ(FileWriter::Create(path, FileWriter::kNew).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*ReadFile(path), "kept");
}

TEST(FileWriterTest, ReportsAFullDisk) {
  auto file = FileWriter::Create("/dev/full", FileWriter::kReplace);
  if (!file.ok()) GTEST_SKIP() << "no /dev/full here: " << file.status();
  ASSERT_TRUE((*file)->Write("x").ok());
  const absl::Status status = (*file)->Flush();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ((*file)->Write("y"), status);
}

}  // namespace
}  // namespace rubato
