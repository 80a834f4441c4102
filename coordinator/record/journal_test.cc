#include "coordinator/record/journal.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "common/storage/file.h"
#include "coordinator/record/file_size_limit.h"

namespace rubato::coordinator {
namespace {

// What a disk answers to a sync; 0: it succeeds.
int sync_error = 0;
int FakeSync(int) {
  errno = sync_error;
  return sync_error == 0 ? 0 : -1;
}

v1::JournalRecord Record(uint64_t generation) {
  v1::JournalRecord record;
  record.mutable_announce()->set_generation(generation);
  record.mutable_announce()->set_reason("because");
  return record;
}

class JournalTest : public testing::Test {
 protected:
  JournalTest()
      : directory_(testing::TempDir() + "/journal-" + testing::UnitTest::GetInstance()->current_test_info()->name()),
        path_(directory_ + "/journal") {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    sync_error = 0;
  }

  std::unique_ptr<JournalWriter> Open(SyncFile sync = fdatasync) {
    absl::StatusOr<JournalWriter::Opened> opened = JournalWriter::Open(path_, boot_id_, sync);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return nullptr;
    recovered_ = std::move(opened->records);
    return std::move(opened->writer);
  }
  void Write(const std::vector<uint64_t>& generations) {
    auto writer = Open();
    for (uint64_t generation : generations) ASSERT_TRUE(writer->Append(Record(generation), true).ok());
  }
  // The generations of all records that are in the file.
  std::vector<uint64_t> Generations() {
    std::vector<uint64_t> generations;
    const auto contents = ReadJournal(path_);
    EXPECT_TRUE(contents.ok()) << contents.status();
    if (!contents.ok()) return {};
    for (const v1::JournalRecord& record : contents->records) generations.push_back(record.announce().generation());
    EXPECT_EQ(contents->bytes, *FileBytes(path_));
    return generations;
  }

  using Numbers = std::vector<uint64_t>;
  const std::string directory_;
  const std::string path_;
  const std::string boot_id_ = "this boot";
  std::vector<v1::JournalRecord> recovered_;
};

TEST_F(JournalTest, ReadsWhatWasWritten) {
  Write({1, 2, 3});
  EXPECT_EQ(Generations(), (Numbers{1, 2, 3}));
  Write({4});
  EXPECT_EQ(recovered_.size(), 3u);
  EXPECT_EQ(Generations(), (Numbers{1, 2, 3, 4}));
}

TEST_F(JournalTest, AMissingFileIsNotFoundAndOneWithoutRecordsEmpty) {
  EXPECT_EQ(ReadJournal(path_).status().code(), absl::StatusCode::kNotFound);
  Write({});
  EXPECT_EQ(*FileBytes(path_), 0u);
}

TEST_F(JournalTest, GoesOnAfterATornRecord) {
  Write({1, 2});
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 3);
  Write({5});
  EXPECT_EQ(Generations(), (Numbers{1, 5}));
  std::filesystem::resize_file(path_, 3);
  Write({6});
  EXPECT_EQ(Generations(), (Numbers{6}));
}

TEST_F(JournalTest, DamageIsToldWithItsPathAndNothingIsChanged) {
  Write({1, 2, 3});
  std::string bytes = *ReadFile(path_);
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok());
  const absl::Status status = JournalWriter::Open(path_, boot_id_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find(path_ + ": record at byte 17 "), absl::string_view::npos) << status;
  EXPECT_EQ(*ReadFile(path_), bytes);
}

TEST_F(JournalTest, GoesOnWhereAPowerCutLostTheMiddle) {
  {
    auto writer = Open();
    v1::JournalRecord header;
    header.mutable_header()->set_boot_id("the boot before");
    ASSERT_TRUE(writer->Append(header, true).ok());
    v1::JournalRecord lease;
    lease.mutable_lease()->mutable_grant()->set_shard(7);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer->Append(lease, false).ok());
  }
  std::string bytes = *ReadFile(path_);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok());
  Write({5});
  EXPECT_LT(recovered_.size(), 4u);
  const auto contents = ReadJournal(path_);
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->records.size(), recovered_.size() + 1);
  EXPECT_EQ(contents->records.back().announce().generation(), 5u);
}

TEST_F(JournalTest, ADirectoryThatDoesNotExistIsAnErrorWithItsPath) {
  const absl::Status status = JournalWriter::Open("/nonexistent/journal", boot_id_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("/nonexistent/journal"), absl::string_view::npos);
}

TEST_F(JournalTest, OnlyOneCoordinatorWritesIt) {
  auto writer = Open();
  ASSERT_TRUE(writer->Append(Record(1), true).ok());
  const absl::Status status = JournalWriter::Open(path_, boot_id_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("another coordinator (process " + std::to_string(getpid())), absl::string_view::npos)
      << status;
  // Also when the file has been replaced.
  ASSERT_TRUE(writer->Replace({Record(1)}).ok());
  EXPECT_EQ(JournalWriter::Open(path_, boot_id_).status().code(), absl::StatusCode::kFailedPrecondition);
  writer = nullptr;
  EXPECT_NE(Open(), nullptr);
}

TEST_F(JournalTest, OneWithoutItsLockKnowsThatAnotherHasTakenOver) {
  auto paused = Open();
  ASSERT_TRUE(paused->Append(Record(1), true).ok());
  EXPECT_TRUE(paused->CheckOwner().ok());
  // As if the lock had been lost.
  std::filesystem::remove(path_ + ".lock");
  auto writer = Open();
  EXPECT_EQ(recovered_.size(), 1u);
  ASSERT_TRUE(writer->Append(Record(2), true).ok());
  for (const absl::Status& status : {paused->CheckOwner(), paused->Append(Record(3), true), paused->Replace({})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_EQ(status.message(), path_ + ": another coordinator writes this journal now");
  }
  EXPECT_EQ(Generations(), (Numbers{1, 2}));
}

TEST_F(JournalTest, AJournalCanBeTakenOverWithoutRoomForAnother) {
  Write({1, 2});
  FileSizeLimit full(20);
  auto writer = Open();
  ASSERT_NE(writer, nullptr);
  EXPECT_EQ(recovered_.size(), 2u);
  EXPECT_EQ(Generations(), (Numbers{1, 2}));
}

TEST_F(JournalTest, AnOldJournalIsWrittenAnew) {
  v1::JournalRecord header;
  header.mutable_header()->set_format_version(1);
  std::string old;
  for (const v1::JournalRecord& record : {header, Record(7)}) {
    const std::string data = record.SerializeAsString();
    const auto crc =
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
    for (const auto value : {static_cast<uint32_t>(data.size()), crc}) {
      for (int i = 0; i < 4; ++i) old.push_back(static_cast<char>(value >> (8 * i)));
    }
    old += data;
  }
  ASSERT_TRUE(WriteFileAtomically(path_, old + "torn").ok());
  Write({8});
  const auto contents = ReadJournal(path_);
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_EQ(contents->format_version, 2u);
  ASSERT_EQ(contents->records.size(), 3u);
  EXPECT_EQ(contents->records[0].header().format_version(), 2u);
  EXPECT_EQ(contents->records[1].announce().generation(), 7u);
  EXPECT_EQ(contents->records[2].announce().generation(), 8u);
}

TEST_F(JournalTest, ReplaceLeavesTheNewRecordsAlone) {
  Write({1, 2, 3});
  auto writer = Open();
  ASSERT_TRUE(writer->Append(Record(4), false).ok());
  ASSERT_TRUE(writer->Replace({Record(9)}).ok());
  EXPECT_EQ(Generations(), (Numbers{9}));
  ASSERT_TRUE(writer->Append(Record(10), true).ok());
  EXPECT_EQ(Generations(), (Numbers{9, 10}));
  EXPECT_EQ(*ListDirectory(directory_), (std::vector<std::string>{"journal", "journal.lock"}));
}

TEST_F(JournalTest, ARecordForWhichThereIsNoRoomCanBeAppendedLater) {
  Write({1, 2});
  auto writer = Open();
  const uint64_t bytes = *FileBytes(path_);
  for (uint64_t room = 0; room < 20; ++room) {
    FileSizeLimit full(bytes + room);
    const absl::Status status = writer->Append(Record(3), true);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(Generations(), (Numbers{1, 2}));
    EXPECT_EQ(writer->Replace({Record(1), Record(2), Record(3)}).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(Generations(), (Numbers{1, 2}));
  }
  EXPECT_EQ(*ListDirectory(directory_), (std::vector<std::string>{"journal", "journal.lock"}));
  EXPECT_TRUE(writer->Append(Record(3), true).ok());
  EXPECT_EQ(Generations(), (Numbers{1, 2, 3}));
}

TEST_F(JournalTest, WhatAFailedSyncMayHaveLostIsWrittenAgain) {
  auto writer = Open(FakeSync);
  ASSERT_TRUE(writer->Append(Record(1), true).ok());
  const uint64_t synced = *FileBytes(path_);
  ASSERT_TRUE(writer->Append(Record(2), false).ok());
  sync_error = EDQUOT;
  EXPECT_EQ(writer->Append(Record(3), true).code(), absl::StatusCode::kResourceExhausted);
  sync_error = EIO;
  EXPECT_EQ(writer->Append(Record(3), true).code(), absl::StatusCode::kUnavailable);
  // As the system may do.
  std::filesystem::resize_file(path_, synced);
  sync_error = 0;
  EXPECT_TRUE(writer->Append(Record(3), true).ok());
  EXPECT_EQ(Generations(), (Numbers{1, 2, 3}));
}

TEST_F(JournalTest, ManyRecordsThatNeedNotBeDurableAreSyncedAllTheSame) {
  auto writer = Open(FakeSync);
  v1::JournalRecord record = Record(1);
  record.mutable_announce()->set_reason(std::string(100 << 10, 'x'));
  sync_error = EIO;
  absl::Status status;
  int appended = 0;
  for (; status.ok() && appended < 100; ++appended) status = writer->Append(record, false);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(appended, 11);
}

}  // namespace
}  // namespace rubato::coordinator
