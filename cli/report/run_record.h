#ifndef RUBATO_CLI_REPORT_RUN_RECORD_H_
#define RUBATO_CLI_REPORT_RUN_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rubato {

// The lines of a run's metrics.jsonl (docs/formats.md) by kind, each in the order of the file. Pure data.
// Times are seconds since training began. Loss and accuracy are absent where the job measured no finite value.

struct StartLine {
  std::string job;
  std::string mode;
  int64_t staleness_bound = 0;
  int64_t workers = 0;
  int64_t servers = 0;
  uint64_t seed = 0;
  int64_t batch_size = 0;
  int64_t train_examples = 0;
  double epochs = 0;
  double target_accuracy = 0;
};

// Totals since the start.
struct WorkerTotals {
  int64_t index = 0;
  int64_t step = 0;
  int64_t examples = 0;
  double data_seconds = 0;
  double compute_seconds = 0;
  double push_seconds = 0;
  double pull_wait_seconds = 0;

  double TotalSeconds() const { return data_seconds + compute_seconds + push_seconds + pull_wait_seconds; }
};

struct ProgressLine {
  double t = 0;
  int64_t step = 0;
  double epoch = 0;
  int64_t examples = 0;
  double examples_per_second = 0;
  std::optional<double> loss;
  std::optional<double> accuracy;
  std::string mode;
  double staleness_mean = 0;
  // Steps by version staleness; the last entry takes all above.
  std::vector<int64_t> staleness_counts;
  double waiting_share = 0;
  double sent_bytes = 0;
  double received_bytes = 0;
  std::vector<WorkerTotals> workers;
};

struct EvaluationLine {
  double t = 0;
  int64_t step = 0;
  double epoch = 0;
  std::optional<double> loss;
  std::optional<double> accuracy;
  bool final = false;
};

struct PlanLine {
  double t = 0;
  int64_t generation = 0;
  std::string mode;
  int64_t staleness_bound = 0;
  int64_t first_step = 0;
  std::vector<int64_t> members;
  std::string reason;
  double round_trip_seconds = 0;
  double stall_seconds = 0;
  double slowest_step_seconds = 0;
};

struct MemberLine {
  double t = 0;
  std::string task;
  std::string event;
  std::string reason;
};

struct EndLine {
  double t = 0;
  bool ok = false;
  std::string error;
  int64_t examples = 0;
  double examples_per_second = 0;
  int64_t non_finite = 0;
  int64_t overflows = 0;
};

struct RunRecord {
  // Absent when the job ended before training began.
  std::optional<StartLine> start;
  std::vector<ProgressLine> progress;
  std::vector<EvaluationLine> evaluations;
  std::vector<PlanLine> plans;
  std::vector<MemberLine> members;
  // Absent while the job runs, or when its coordinator was killed.
  std::optional<EndLine> end;
};

// Parses a whole run record. A last line without a newline that is not whole JSON was torn by a crash and is ignored;
// lines of unknown kinds, and unknown fields, come from newer versions and are skipped.
// InvalidArgument for any other malformed line, with "<file>:<line>: field <name>: ...".
absl::StatusOr<RunRecord> ParseRunRecord(absl::string_view text, const std::string& file);

// Reads and parses <run_directory>/metrics.jsonl. NotFound when there is none.
absl::StatusOr<RunRecord> ReadRunRecord(const std::string& run_directory);

}  // namespace rubato

#endif  // RUBATO_CLI_REPORT_RUN_RECORD_H_
