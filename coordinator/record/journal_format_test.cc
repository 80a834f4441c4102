#include "coordinator/record/journal_format.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rubato::coordinator {
namespace {

v1::JournalRecord Record(uint64_t generation) {
  v1::JournalRecord record;
  record.mutable_announce()->set_generation(generation);
  record.mutable_announce()->set_reason("because");
  return record;
}

// A journal of records with generations 1 to `count`, and where each record begins, and the end.
struct Journal {
  explicit Journal(uint64_t count) {
    for (uint64_t generation = 1; generation <= count; ++generation) {
      begins.push_back(bytes.size());
      EXPECT_TRUE(AppendJournalRecord(Record(generation), &bytes).ok());
    }
    begins.push_back(bytes.size());
  }
  std::string bytes{kJournalFirstLine};
  std::vector<size_t> begins;
};

// The same of version 1: length, CRC, data.
std::string OldJournal(uint64_t count) {
  std::string bytes;
  const auto add = [&bytes](uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  };
  for (uint64_t generation = 1; generation <= count; ++generation) {
    const std::string data = Record(generation).SerializeAsString();
    add(static_cast<uint32_t>(data.size()));
    add(static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()))));
    bytes += data;
  }
  return bytes;
}

void ExpectFirst(const absl::StatusOr<JournalContents>& contents, size_t count) {
  ASSERT_TRUE(contents.ok()) << contents.status();
  ASSERT_EQ(contents->records.size(), count);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(contents->records[i].announce().generation(), i + 1);
}

TEST(JournalFormatTest, ReadsWhatWasWritten) {
  const Journal journal(3);
  const auto contents = DecodeJournal(journal.bytes);
  ExpectFirst(contents, 3);
  EXPECT_EQ(contents->bytes, journal.bytes.size());
  EXPECT_EQ(contents->format_version, 2u);
  ExpectFirst(DecodeJournal(""), 0);
}

TEST(JournalFormatTest, ATornEndIsDroppedWhereverItIs) {
  const Journal journal(3);
  for (size_t size = 0; size < journal.bytes.size(); ++size) {
    size_t whole = 0;
    while (journal.begins[whole + 1] <= size) ++whole;
    const auto contents = DecodeJournal(journal.bytes.substr(0, size));
    ExpectFirst(contents, whole);
    EXPECT_EQ(contents->bytes, size < kJournalFirstLine.size() ? 0 : journal.begins[whole]) << size;
  }
}

TEST(JournalFormatTest, AnEndThatTheDiskFilledWithZerosIsTorn) {
  const Journal journal(2);
  for (size_t zeros : {1, 11, 12, 13, 4096}) {
    ExpectFirst(DecodeJournal(journal.bytes + std::string(zeros, '\0')), 2);
    std::string bytes = journal.bytes;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(journal.begins[1]), bytes.end(), '\0');
    ExpectFirst(DecodeJournal(bytes + std::string(zeros, '\0')), 1);
  }
}

TEST(JournalFormatTest, ABeginningThatTheDiskNeverWroteIsNoDecision) {
  v1::JournalRecord lease;
  lease.mutable_lease()->mutable_grant()->set_shard(7);
  std::string bytes(kJournalFirstLine);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(AppendJournalRecord(lease, &bytes).ok());
  const auto without_beginning = [&bytes] { return std::string(24, '\0') + bytes.substr(24); };
  ExpectFirst(DecodeJournal(without_beginning()), 0);
  ExpectFirst(DecodeJournal(std::string(4096, '\0')), 0);
  // A decision that was on the disk, with all before it, when the next record was written.
  ASSERT_TRUE(AppendJournalRecord(Record(1), &bytes).ok());
  ExpectFirst(DecodeJournal(without_beginning()), 0);
  ASSERT_TRUE(AppendJournalRecord(lease, &bytes).ok());
  EXPECT_EQ(DecodeJournal(without_beginning()).status().code(), absl::StatusCode::kDataLoss);
}

TEST(JournalFormatTest, NoWrongBitLosesARecordSilently) {
  const Journal journal(4);
  for (size_t at = 0; at < journal.bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = journal.bytes;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      const auto contents = DecodeJournal(bytes);
      if (at >= journal.begins[3]) {
        // The last one, which might be torn.
        ExpectFirst(contents, 3);
        continue;
      }
      ASSERT_FALSE(contents.ok()) << "byte " << at << ", bit " << bit;
      if (at < kJournalFirstLine.size()) continue;
      EXPECT_EQ(contents.status().code(), absl::StatusCode::kDataLoss);
      size_t record = 0;
      while (journal.begins[record + 1] <= at) ++record;
      EXPECT_TRUE(
          absl::StartsWith(contents.status().message(), absl::StrCat("record at byte ", journal.begins[record], " ")))
          << contents.status();
    }
  }
}

TEST(JournalFormatTest, AWrongBitBeforeATornEndIsDamage) {
  const Journal journal(3);
  std::string bytes = journal.bytes.substr(0, journal.bytes.size() - 2);
  for (size_t at = journal.begins[1]; at < journal.begins[2]; ++at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    EXPECT_EQ(DecodeJournal(bytes).status().code(), absl::StatusCode::kDataLoss) << at;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
  }
}

// A header and a term of "one boot", then a record that is synced, and leases that are not.
struct JournalOfABoot {
  explicit JournalOfABoot(int leases) {
    v1::JournalRecord record;
    record.mutable_header()->set_boot_id("one boot");
    Add(record);
    record.mutable_term()->set_boot_id("one boot");
    Add(record);
    Add(Record(1));
    record.mutable_lease()->mutable_grant()->set_shard(7);
    for (int i = 0; i < leases; ++i) Add(record);
  }
  void Add(const v1::JournalRecord& record) {
    begins.push_back(bytes.size());
    EXPECT_TRUE(AppendJournalRecord(record, &bytes).ok());
  }
  // With zeros in place of this record, as if the disk had written what is behind it alone.
  std::string Without(size_t record) const {
    std::string damaged = bytes;
    const size_t end = record + 1 < begins.size() ? begins[record + 1] : bytes.size();
    std::fill(damaged.begin() + static_cast<std::ptrdiff_t>(begins[record]),
              damaged.begin() + static_cast<std::ptrdiff_t>(end), '\0');
    return damaged;
  }
  std::string bytes{kJournalFirstLine};
  std::vector<size_t> begins;
};

TEST(JournalFormatTest, APowerCutMayLoseTheMiddleOfWhatWasNotSynced) {
  const JournalOfABoot journal(4);
  for (size_t lost : {3, 4, 5}) {
    const auto contents = DecodeJournal(journal.Without(lost), "another boot");
    ASSERT_TRUE(contents.ok()) << contents.status();
    EXPECT_EQ(contents->records.size(), lost);
    EXPECT_EQ(contents->bytes, journal.begins[lost]);
    // The machine has not lost power, or nobody knows.
    EXPECT_EQ(DecodeJournal(journal.Without(lost), "one boot").status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(DecodeJournal(journal.Without(lost)).status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST(JournalFormatTest, WhatWasSyncedIsNotLostWithThePower) {
  JournalOfABoot journal(2);
  // Before a record that is synced: nothing was appended behind that before it was done.
  EXPECT_EQ(DecodeJournal(journal.Without(1), "another boot").status().code(), absl::StatusCode::kDataLoss);
  // That record itself: nothing says any more that it was.
  EXPECT_TRUE(DecodeJournal(journal.Without(2), "another boot").ok());
  // A sync that never ended: the record is there, and what was to be synced before it is not.
  journal.Add(Record(2));
  EXPECT_TRUE(DecodeJournal(journal.Without(4), "another boot").ok());
  v1::JournalRecord lease;
  lease.mutable_lease();
  journal.Add(lease);
  EXPECT_EQ(DecodeJournal(journal.Without(4), "another boot").status().code(), absl::StatusCode::kDataLoss);
}

TEST(JournalFormatTest, AHeaderThatTheDiskNeverWroteIsNoDecision) {
  v1::JournalRecord record;
  record.mutable_header()->set_boot_id("one boot");
  std::string bytes(kJournalFirstLine);
  ASSERT_TRUE(AppendJournalRecord(record, &bytes).ok());
  const size_t header_end = bytes.size();
  record.mutable_task()->set_reason("joined");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(AppendJournalRecord(record, &bytes).ok());
  const auto without_header = [&] {
    std::string damaged = bytes;
    std::fill(damaged.begin() + static_cast<std::ptrdiff_t>(kJournalFirstLine.size()),
              damaged.begin() + static_cast<std::ptrdiff_t>(header_end), '\0');
    return damaged;
  };
  ExpectFirst(DecodeJournal(without_header(), "another boot"), 0);
  EXPECT_EQ(DecodeJournal(without_header()).status().code(), absl::StatusCode::kDataLoss);
  // A decision, and what was written once that was on the disk.
  ASSERT_TRUE(AppendJournalRecord(Record(1), &bytes).ok());
  ExpectFirst(DecodeJournal(without_header(), "another boot"), 0);
  ASSERT_TRUE(AppendJournalRecord(record, &bytes).ok());
  EXPECT_EQ(DecodeJournal(without_header(), "another boot").status().code(), absl::StatusCode::kDataLoss);
}

TEST(JournalFormatTest, ANewerVersionIsNamed) {
  const absl::Status status = DecodeJournal("rubato journal 3\nwhatever").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "has format version 3, this program reads up to 2");
}

TEST(JournalFormatTest, WhatIsNoRecordAndYetHasItsChecksumIsDamage) {
  std::string data = Record(1).SerializeAsString();
  data[0] = '\7';  // A field of a kind that there is not.
  std::string old = OldJournal(1).substr(0, 4);
  const uint32_t crc =
      static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
  for (int i = 0; i < 4; ++i) old.push_back(static_cast<char>(crc >> (8 * i)));
  EXPECT_EQ(DecodeJournal(old + data).status().code(), absl::StatusCode::kDataLoss);
}

TEST(JournalFormatTest, ReadsVersion1) {
  const std::string bytes = OldJournal(3);
  const auto contents = DecodeJournal(bytes);
  ExpectFirst(contents, 3);
  EXPECT_EQ(contents->format_version, 1u);
  EXPECT_EQ(contents->bytes, bytes.size());
  for (size_t size = bytes.size() * 2 / 3; size < bytes.size(); ++size) {
    ExpectFirst(DecodeJournal(bytes.substr(0, size)), 2);
  }
  std::string damaged = bytes;
  damaged[12] = 'x';
  EXPECT_EQ(DecodeJournal(damaged).status().message(), "record at byte 0 is damaged, and is not the last one");
}

}  // namespace
}  // namespace rubato::coordinator
