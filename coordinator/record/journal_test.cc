#include "coordinator/record/journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace rubato::coordinator {
namespace {

class JournalTest : public testing::Test {
 protected:
  JournalTest()
      : path_(testing::TempDir() + "/journal-" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove(path_);
  }

  void Write(int64_t at, const std::vector<uint64_t>& generations) {
    auto writer = JournalWriter::Open(path_, at);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (uint64_t generation : generations) {
      v1::JournalRecord record;
      record.mutable_announce()->set_generation(generation);
      record.mutable_announce()->set_reason("because");
      ASSERT_TRUE((*writer)->Append(record, true).ok());
    }
  }
  void Overwrite(std::streamoff at, char byte) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.put(byte);
  }

  const std::string path_;
};

TEST_F(JournalTest, ReadsWhatWasWritten) {
  Write(0, {1, 2, 3});
  auto contents = ReadJournal(path_);
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_EQ(contents->records.size(), 3u);
  EXPECT_EQ(contents->records[2].announce().generation(), 3u);
  EXPECT_EQ(contents->bytes, static_cast<int64_t>(std::filesystem::file_size(path_)));
}

TEST_F(JournalTest, AMissingFileIsNotFound) {
  EXPECT_EQ(ReadJournal(path_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JournalTest, DropsATornLastRecordWhereverItWasCut) {
  Write(0, {1, 2});
  const int64_t two = static_cast<int64_t>(std::filesystem::file_size(path_));
  for (int64_t size = two - 1; size > two / 2; --size) {
    std::filesystem::resize_file(path_, static_cast<uintmax_t>(size));
    auto contents = ReadJournal(path_);
    ASSERT_TRUE(contents.ok()) << contents.status();
    EXPECT_EQ(contents->records.size(), 1u);
    EXPECT_EQ(contents->bytes, two / 2);
  }
}

TEST_F(JournalTest, GoesOnAfterATornRecord) {
  Write(0, {1, 2});
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 3);
  Write(ReadJournal(path_)->bytes, {5});
  auto contents = ReadJournal(path_);
  ASSERT_EQ(contents->records.size(), 2u);
  EXPECT_EQ(contents->records[1].announce().generation(), 5u);
}

TEST_F(JournalTest, ADamagedRecordInTheMiddleIsDataLoss) {
  Write(0, {1, 2, 3});
  Overwrite(12, 'x');
  auto contents = ReadJournal(path_);
  EXPECT_EQ(contents.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(contents.status().message().find("byte 0"), absl::string_view::npos);
}

TEST_F(JournalTest, ADirectoryThatDoesNotExistIsAnErrorWithItsPath) {
  auto writer = JournalWriter::Open("/nonexistent/journal", 0);
  EXPECT_EQ(writer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(writer.status().message().find("/nonexistent/journal"), absl::string_view::npos);
}

}  // namespace
}  // namespace rubato::coordinator
