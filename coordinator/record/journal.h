#ifndef RUBATO_COORDINATOR_RECORD_JOURNAL_H_
#define RUBATO_COORDINATOR_RECORD_JOURNAL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/journal.pb.h"

namespace rubato::coordinator {

// JournalHeader.format_version that this program writes.
inline constexpr uint32_t kJournalFormatVersion = 1;

struct JournalContents {
  std::vector<v1::JournalRecord> records;
  // Bytes of whole records; what follows is a torn one.
  int64_t bytes = 0;
};

// Reads a journal. NotFound: there is no such file. DataLoss: a record before the last one is damaged; the message has
// its offset. A last record that was cut short, or whose CRC is wrong, is dropped: nothing that followed from it was
// sent.
absl::StatusOr<JournalContents> ReadJournal(const std::string& path);

// Appends records. Not thread-safe.
//
//   RUBATO_ASSIGN_OR_RETURN(auto journal, JournalWriter::Open(path, contents.bytes));
//   RUBATO_RETURN_IF_ERROR(journal->Append(record, /*durable=*/true));
class JournalWriter {
 public:
  // Creates the file, or opens it and cuts it to `bytes`. Errors carry path and reason of the system call.
  static absl::StatusOr<std::unique_ptr<JournalWriter>> Open(const std::string& path, int64_t bytes);
  ~JournalWriter();
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // With `durable`, this record and all before it are on the disk on return; otherwise they outlive the process, but
  // not the machine. Unavailable: an I/O error; the journal must not be used any more.
  absl::Status Append(const v1::JournalRecord& record, bool durable);

 private:
  JournalWriter(std::string path, int file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  const int file_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_JOURNAL_H_
