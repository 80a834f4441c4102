#ifndef RUBATO_COORDINATOR_RECORD_JOURNAL_FORMAT_H_
#define RUBATO_COORDINATOR_RECORD_JOURNAL_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/journal.pb.h"

// The bytes of a journal (docs/formats.md). Pure.

namespace rubato::coordinator {

// The version that this program writes, also JournalHeader.format_version.
inline constexpr uint32_t kJournalFormatVersion = 2;

// What a journal begins with.
inline constexpr absl::string_view kJournalFirstLine = "rubato journal 2\n";

// Appends a record. InvalidArgument: it is larger than records may be; nothing is appended.
absl::Status AppendJournalRecord(const v1::JournalRecord& record, std::string* bytes);

struct JournalContents {
  std::vector<v1::JournalRecord> records;
  // Bytes of the first line and of whole records; what follows is a torn record.
  uint64_t bytes = 0;
  // Of the file: 1 or 2. An empty one is of version 2.
  uint32_t format_version = kJournalFormatVersion;
};

// Reads a journal of version 1 or 2. A last record that was cut short, or whose checksum is wrong, is dropped: nothing
// that followed from it was sent. DataLoss: something before the last record is damaged, or the last one has a right
// checksum and yet is no record; the message has the offset. Unimplemented: a version above 2; the message has both.
//
// `boot_id` names the present boot of the machine; empty: it does not matter. What was not synced when a machine lost
// its power may be on the disk in part, later bytes without earlier ones. So if the records before a damaged one are of
// another boot, or there are none, and no record behind it shows that it had been synced, it and all behind it are
// dropped as well.
absl::StatusOr<JournalContents> DecodeJournal(absl::string_view bytes, absl::string_view boot_id = "");

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_JOURNAL_FORMAT_H_
