#include "cli/command/run_ending.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "cli/launch/status_line.h"
#include "cli/report/run_record.h"
#include "common/storage/file.h"

namespace rubato {
namespace {

// The checkpoint's directory if all servers have written their parts; otherwise empty.
std::string WholeCheckpoint(const std::string& run_directory, const std::string& name, int64_t servers) {
  const std::string directory = JoinPath(run_directory, absl::StrCat("checkpoints/", name));
  for (int64_t i = 0; i < servers; ++i) {
    if (!FileExists(JoinPath(directory, absl::StrCat("server-", i, ".manifest")))) return "";
  }
  return servers > 0 ? directory : "";
}

absl::Time LastWritten(const std::string& path) {
  struct stat file = {};
  return stat(path.c_str(), &file) == 0 ? absl::TimeFromTimespec(file.st_mtim) : absl::InfinitePast();
}

std::string WayOn(const std::string& weights) {
  return absl::StrCat("Its weights are in ", weights, "; go on from them with --set training.start_from=", weights);
}

}  // namespace

std::optional<RunEnding> ReadRunEnding(const std::string& run_directory) {
  const absl::StatusOr<RunRecord> record = ReadRunRecord(run_directory);
  if (!record.ok() || !record->end.has_value()) return std::nullopt;
  RunEnding ending;
  ending.ok = record->end->ok();
  ending.error = record->end->error();
  ending.at = LastWritten(JoinPath(run_directory, "metrics.jsonl"));
  if (record->start.has_value()) {
    ending.trained = absl::Seconds(record->end->t());
    ending.weights = WholeCheckpoint(run_directory, ending.ok ? "final" : "stopped", record->start->servers());
  }
  return ending;
}

std::string DescribeEnding(const RunEnding& ending, const std::string& run_directory) {
  const bool stopped = !ending.ok && !ending.weights.empty();
  std::string text = absl::StrCat("The run in ", run_directory,
                                  ending.ok ? " is done: it ended on "
                                  : stopped ? " was stopped on "
                                            : " failed on ",
                                  absl::FormatTime("%Y-%m-%d at %H:%M:%S", ending.at, absl::LocalTimeZone()));
  if (ending.trained.has_value()) {
    absl::StrAppend(&text, ", ", FormatSeconds(absl::ToDoubleSeconds(*ending.trained)), " after training began");
  } else {
    absl::StrAppend(&text, ", before training began");
  }
  if (!ending.ok) absl::StrAppend(&text, ": ", ending.error);
  if (stopped) return absl::StrCat(text, "\n", WayOn(ending.weights));
  return absl::StrCat(
      text, "\n",
      ending.weights.empty() ? "It has left no weights" : absl::StrCat("Its weights are in ", ending.weights));
}

absl::Status WithWayOn(const absl::Status& outcome, const std::string& run_directory) {
  if (outcome.ok()) return outcome;
  const std::optional<RunEnding> ending = ReadRunEnding(run_directory);
  if (!ending.has_value() || ending->ok || ending->weights.empty()) return outcome;
  return absl::Status(outcome.code(), absl::StrCat(outcome.message(), "\n", WayOn(ending->weights)));
}

}  // namespace rubato
