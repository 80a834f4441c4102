#ifndef RUBATO_COORDINATOR_RECORD_RUN_FILES_H_
#define RUBATO_COORDINATOR_RECORD_RUN_FILES_H_

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/record/journal.h"
#include "proto/job_config.pb.h"
#include "proto/run_record.pb.h"

namespace rubato::coordinator {

// The coordinator's files in the run directory: job.textproto, journal and metrics.jsonl. Not thread-safe.
class RunFiles {
 public:
  // Creates the directory and the files. With `resume`, takes over the journal that is there; a directory without one
  // is begun afresh. AlreadyExists: without `resume`, the directory holds a journal or a run record that is not empty.
  // Unavailable: a file cannot be written. DataLoss: the journal is damaged.
  static absl::StatusOr<std::unique_ptr<RunFiles>> Open(const v1::JobConfig& config, bool resume);

  // The records that were there.
  const std::vector<v1::JournalRecord>& recovered() const { return recovered_; }

  // Unavailable: an I/O error.
  absl::Status AppendJournal(const v1::JournalRecord& record, bool durable) {
    return journal_->Append(record, durable);
  }
  absl::Status AppendMetrics(const v1::RunRecordLine& line);

 private:
  RunFiles() = default;

  std::string metrics_path_;
  std::vector<v1::JournalRecord> recovered_;
  std::unique_ptr<JournalWriter> journal_;
  std::ofstream metrics_;
};

}  // namespace rubato::coordinator

#endif  // RUBATO_COORDINATOR_RECORD_RUN_FILES_H_
