#include "coordinator/record/append_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "common/storage/file.h"
#include "coordinator/record/file_size_limit.h"

namespace rubato::coordinator {
namespace {

class AppendFileTest : public testing::Test {
 protected:
  AppendFileTest()
      : path_(testing::TempDir() + "/append_file-" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove(path_);
  }
  std::string Contents() { return ReadFile(path_).value_or("none"); }

  const std::string path_;
};

TEST_F(AppendFileTest, GoesOnWhereTheFileEnds) {
  ASSERT_TRUE((*AppendFile::Open(path_))->Append("one ").ok());
  auto file = AppendFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 4u);
  ASSERT_TRUE((*file)->Append("two").ok());
  EXPECT_TRUE((*file)->Sync().ok());
  EXPECT_EQ(Contents(), "one two");
  ASSERT_TRUE((*file)->Truncate(3).ok());
  ASSERT_TRUE((*file)->Append("!").ok());
  EXPECT_EQ(Contents(), "one!");
}

TEST_F(AppendFileTest, WhatDoesNotFitIsTakenBackAndFitsLater) {
  auto file = AppendFile::Open(path_);
  ASSERT_TRUE((*file)->Append("0123456789").ok());
  {
    FileSizeLimit full(14);
    const absl::Status status = (*file)->Append("abcdefgh");
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_NE(status.message().find(path_), absl::string_view::npos) << status;
    EXPECT_EQ(Contents(), "0123456789");
    // What fits does.
    EXPECT_TRUE((*file)->Append("AB").ok());
  }
  EXPECT_TRUE((*file)->Append("abcdefgh").ok());
  EXPECT_EQ(Contents(), "0123456789ABabcdefgh");
}

TEST_F(AppendFileTest, ErrorsOfRoomAreToldFromOthers) {
  EXPECT_EQ(DiskError(ENOSPC, "a", "write").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DiskError(EDQUOT, "a", "write").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DiskError(EIO, "a", "write").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(AppendFile::Open("/no/such/file").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(AppendFileTest, AFullDeviceIsNoRoom) {
  auto file = AppendFile::Open("/dev/full");
  if (!file.ok()) GTEST_SKIP() << "no /dev/full here: " << file.status();
  EXPECT_EQ((*file)->Append("x").code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace rubato::coordinator
