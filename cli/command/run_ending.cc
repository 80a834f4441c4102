#include "cli/command/run_ending.h"

#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/checkpoint/run_checkpoints.h"
#include "cli/launch/status_line.h"
#include "cli/report/run_record.h"
#include "common/config/awaited_model.h"
#include "common/config/config_text.h"
#include "common/storage/checkpoint_list.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"
#include "common/storage/run_record_json.h"
#include "proto/job_config.pb.h"

namespace rubato {
namespace {

// What the reason of every stop on request begins with.
constexpr absl::string_view kStoppedBy = "stopped by ";

// The checkpoint's directory if it is complete: the coordinator has written its record there, or all servers their
// parts. Otherwise empty.
std::string WholeCheckpoint(const std::string& run_directory, const std::string& name, int64_t servers) {
  const std::string directory = JoinPath(CheckpointsOfRun(run_directory), name);
  if (FileExists(JoinPath(directory, kCutRecordName))) return directory;
  for (int64_t i = 0; i < servers; ++i) {
    if (!FileExists(JoinPath(directory, absl::StrCat("server-", i, ".manifest")))) return "";
  }
  return servers > 0 ? directory : "";
}

// As its config says.
bool IsRunOfClients(const std::string& run_directory) {
  const std::string path = JoinPath(run_directory, "job.textproto");
  const absl::StatusOr<std::string> text = ReadFile(path);
  v1::JobConfig config;
  return text.ok() && ParseText(*text, path, &config).ok() && IsClientJob(config);
}

absl::Time LastWritten(const std::string& path) {
  struct stat file = {};
  return stat(path.c_str(), &file) == 0 ? absl::TimeFromTimespec(file.st_mtim) : absl::InfinitePast();
}

// Whether nothing was recorded after the end: a run that is resumed goes on with its record.
bool LastLineIsEnd(absl::string_view text) {
  absl::ConsumeSuffix(&text, "\n");
  const absl::StatusOr<v1::RunRecordLine> line = ParseRunRecordJson(text.substr(text.rfind('\n') + 1));
  return line.ok() && line->has_end();
}

}  // namespace

std::optional<RunEnding> ReadRunEnding(const std::string& run_directory) {
  const std::string path = JoinPath(run_directory, "metrics.jsonl");
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok() || !LastLineIsEnd(*text)) return std::nullopt;
  const absl::StatusOr<RunRecord> record = ParseRunRecord(*text, path);
  if (!record.ok() || !record->end.has_value()) return std::nullopt;
  RunEnding ending;
  ending.ok = record->end->ok();
  ending.error = record->end->error();
  ending.at = LastWritten(path);
  if (record->start.has_value()) {
    ending.trained = absl::Seconds(record->end->t());
    ending.weights = WholeCheckpoint(run_directory, ending.ok ? "final" : "stopped", record->start->servers());
    // A job that went on from there and was stopped again has written another one.
    const std::vector<std::string> complete = ListCheckpoints(CheckpointsOfRun(run_directory));
    if (!ending.ok && !ending.weights.empty() && !complete.empty() && complete.back() != "step0") {
      ending.weights = JoinPath(CheckpointsOfRun(run_directory), complete.back());
    }
    // A run that was resumed may have failed after the stop that the checkpoint is of.
    ending.stopped = !ending.ok && !ending.weights.empty() && absl::StartsWith(ending.error, kStoppedBy);
  }
  return ending;
}

std::string DescribeEnding(const RunEnding& ending, const std::string& run_directory) {
  std::string text = absl::StrCat("The run in ", run_directory,
                                  ending.ok        ? " is done: it ended on "
                                  : ending.stopped ? " was stopped on "
                                                   : " failed on ",
                                  absl::FormatTime("%Y-%m-%d at %H:%M:%S", ending.at, absl::LocalTimeZone()));
  if (ending.trained.has_value()) {
    absl::StrAppend(&text, ", ", FormatSeconds(absl::ToDoubleSeconds(*ending.trained)), " after training began");
  } else {
    absl::StrAppend(&text, ", before training began");
  }
  if (!ending.ok) absl::StrAppend(&text, ": ", ending.error);
  if (ending.stopped) return absl::StrCat(text, "\n", WayOn(ending.weights));
  return absl::StrCat(
      text, "\n",
      ending.weights.empty() ? "It has left no weights" : absl::StrCat("Its weights are in ", ending.weights));
}

std::string WayOn(const std::string& weights) {
  const std::string run_directory = DirectoryOf(DirectoryOf(weights));
  const std::string command = IsRunOfClients(run_directory)
                                  ? absl::StrCat("rubato run --run_directory=", run_directory, " --resume -- COMMAND")
                                  : "rubato train CONFIG --resume";
  return absl::StrCat("Its weights are in ", weights, "; go on with ", command, ", or begin another job ",
                      "with them: --set training.start_from=", weights);
}

absl::Status WithWayOn(const absl::Status& outcome, const std::string& run_directory) {
  if (outcome.ok()) return outcome;
  const std::optional<RunEnding> ending = ReadRunEnding(run_directory);
  if (!ending.has_value() || !ending->stopped) return outcome;
  return absl::Status(outcome.code(), absl::StrCat(outcome.message(), "\n", WayOn(ending->weights)));
}

}  // namespace rubato
