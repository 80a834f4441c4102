#ifndef RUBATO_COORDINATOR_RECORD_JOURNAL_H_
#define RUBATO_COORDINATOR_RECORD_JOURNAL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/record/append_file.h"
#include "coordinator/record/file_lock.h"
#include "coordinator/record/journal_format.h"
#include "proto/journal.pb.h"

namespace rubato::coordinator {

// Reads a journal; `boot_id` as in DecodeJournal. NotFound: there is no such file. Unavailable: it cannot be read.
// Other errors as of DecodeJournal, with the path.
absl::StatusOr<JournalContents> ReadJournal(const std::string& path, absl::string_view boot_id = "");

// Appends records to the journal that it alone has, of all processes: beside it is a file that is locked, <path>.lock.
// A lock can be lost with the connection to a file server, so a writer puts a new file in the place of the one that it
// has read, as it begins: what one that wakes up later writes goes to the old file, and it can know that. Not
// thread-safe.
//
// Errors of the disk leave the journal with the records that it had, and the call may be made again: ResourceExhausted
// if there is no room, which may change, and Unavailable for others, of which that is not to be expected. Both calls
// also fail with CheckOwner's error.
//
//   RUBATO_ASSIGN_OR_RETURN(JournalWriter::Opened journal, JournalWriter::Open(path));
//   RUBATO_RETURN_IF_ERROR(journal.writer->Append(record, /*durable=*/true));
class JournalWriter {
 public:
  struct Opened;

  // Reads the journal that is there, or creates one, and writes it anew in one step, without what is torn at its end
  // and as this version has it; in place if there is no room for that. `boot_id` as in DecodeJournal.
  // FailedPrecondition: another process writes it; says which. Errors of ReadJournal and of the disk.
  static absl::StatusOr<Opened> Open(const std::string& path, absl::string_view boot_id, SyncFile sync = fdatasync);

  // Aborted: another coordinator has put its journal in the place of this one. As the system knows it, which for a file
  // on another machine may be a minute later.
  absl::Status CheckOwner() const;

  // With `durable`, this record and all before it are on the disk on return; otherwise they outlive the process, but
  // not the machine. InvalidArgument: the record is too large.
  absl::Status Append(const v1::JournalRecord& record, bool durable);

  // Puts a journal of these records in place of the one that is there, in one step, durably. When it fails, either is
  // there, and either may be appended to.
  absl::Status Replace(const std::vector<v1::JournalRecord>& records);

 private:
  JournalWriter(std::string path, std::unique_ptr<FileLock> lock, SyncFile sync)
      : path_(std::move(path)), lock_(std::move(lock)), sync_(sync) {}

  // Goes on with the file that is there.
  absl::Status GoOnWith(const JournalContents& contents);
  // Makes up for what an earlier call could not do.
  absl::Status Repair();
  absl::Status Sync();
  void NoteSynced();

  const std::string path_;
  const std::unique_ptr<FileLock> lock_;
  const SyncFile sync_;
  std::unique_ptr<AppendFile> file_;
  // What was appended since the last sync, after this many bytes.
  std::string unsynced_;
  uint64_t synced_bytes_ = 0;
  // A sync failed: the system may have forgotten what is unsynced.
  bool unsynced_lost_ = false;
  // The file's name is not known to be on the disk.
  bool directory_unsynced_ = false;
};

struct JournalWriter::Opened {
  std::unique_ptr<JournalWriter> writer;
  // That were there.
  std::vector<v1::JournalRecord> records;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_JOURNAL_H_
