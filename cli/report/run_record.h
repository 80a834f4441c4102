#ifndef RUBATO_CLI_REPORT_RUN_RECORD_H_
#define RUBATO_CLI_REPORT_RUN_RECORD_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/run_record.pb.h"

namespace rubato {

// The lines of a run's metrics.jsonl (proto/run_record.proto) by kind, each in the order of the file. If the job
// went back to a checkpoint, the progress and the evaluations that this undid are left out. Pure data.
struct RunRecord {
  // Absent when the job ended before training began.
  std::optional<v1::StartLine> start;
  std::vector<v1::ProgressLine> progress;
  std::vector<v1::EvaluationLine> evaluations;
  std::vector<v1::PlanLine> plans;
  std::vector<v1::MemberLine> members;
  std::vector<v1::CheckpointLine> checkpoints;
  std::vector<v1::RollbackLine> rollbacks;
  // Absent while the job runs, or when its coordinator was killed.
  std::optional<v1::EndLine> end;
};

// Parses a whole run record. A last line without a newline that cannot be read was torn by a crash and is ignored;
// lines of unknown kinds come from newer versions and are skipped. InvalidArgument for any other malformed line, with
// "<file>:<line>: ...".
absl::StatusOr<RunRecord> ParseRunRecord(absl::string_view text, const std::string& file);

// Reads and parses <run_directory>/metrics.jsonl. NotFound when there is none; other errors of ReadFile.
absl::StatusOr<RunRecord> ReadRunRecord(const std::string& run_directory);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_RUN_RECORD_H_
