#ifndef RUBATO_COORDINATOR_RECORD_RUN_FILES_H_
#define RUBATO_COORDINATOR_RECORD_RUN_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coordinator/record/append_file.h"
#include "coordinator/record/journal.h"
#include "proto/checkpoint.pb.h"
#include "proto/job_config.pb.h"
#include "proto/run_record.pb.h"

namespace rubato::coordinator {

// The coordinator's files: job.textproto, journal and metrics.jsonl in the run directory, and the records of cuts in
// the checkpoint directory. Not thread-safe.
//
// Errors of the disk are ResourceExhausted, if there is no room, and Unavailable. After both the files are as they
// were before, and the call may be made again.
class RunFiles {
 public:
  // Creates the directory and the files. With `resume`, takes over the journal that is there; a directory without one
  // is begun afresh. `boot_id` names the present boot of the machine (DecodeJournal). AlreadyExists: without `resume`,
  // the directory holds a journal or a run record that is not empty. FailedPrecondition: another coordinator writes the
  // journal. DataLoss: the journal is damaged. Unimplemented: it is of a newer program. Errors of the disk.
  static absl::StatusOr<std::unique_ptr<RunFiles>> Open(const v1::JobConfig& config, bool resume,
                                                        absl::string_view boot_id);
  // Whether Open without `resume` would find an earlier run there, for who cannot open it yet. AlreadyExists as of
  // Open.
  static absl::Status CheckNew(const v1::JobConfig& config);

  // The records that were there.
  const std::vector<v1::JournalRecord>& recovered() const { return recovered_; }

  // Errors as of JournalWriter.
  absl::Status CheckOwner() const { return journal_->CheckOwner(); }
  absl::Status AppendJournal(const v1::JournalRecord& record, bool durable) {
    return journal_->Append(record, durable);
  }
  absl::Status ReplaceJournal(const std::vector<v1::JournalRecord>& records) { return journal_->Replace(records); }
  // What the file says now. Errors of ReadJournal.
  absl::StatusOr<std::vector<v1::JournalRecord>> ReadBackJournal() const;

  // A line that cannot be written is left out; the next one is an attempt of its own.
  absl::Status AppendMetrics(const v1::RunRecordLine& line);

  // Writes <checkpoint directory>/<name>/cut in one step, durably. InvalidArgument: `name` is neither "stopped" nor
  // "step<number>".
  absl::Status WriteCutRecord(const std::string& name, const v1::CutRecord& record);
  // Removes the record of every cut "step<number>" that `keep` does not name, and the directories of such cuts that are
  // empty. To be called while no cut is being written, or `keep` names that as well. Tries all, and returns the first
  // error.
  absl::Status RemoveCutRecords(const std::vector<std::string>& keep);

 private:
  RunFiles() = default;

  std::string journal_path_;
  std::string checkpoint_directory_;
  std::vector<v1::JournalRecord> recovered_;
  std::unique_ptr<JournalWriter> journal_;
  std::unique_ptr<AppendFile> metrics_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_RUN_FILES_H_
