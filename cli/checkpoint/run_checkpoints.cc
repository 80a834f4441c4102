#include "cli/checkpoint/run_checkpoints.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/checkpoint/checkpoint_summary.h"
#include "common/config/checkpoint_directory.h"
#include "common/status.h"
#include "common/storage/checkpoint_list.h"
#include "common/storage/cut_record.h"
#include "common/storage/file.h"
#include "proto/job_config.pb.h"

namespace rubato {
namespace {

// Those that are complete as ListCheckpoints has them, then what else is there.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& checkpoints) {
  std::vector<std::string> names = ListCheckpoints(checkpoints);
  RUBATO_ASSIGN_OR_RETURN(const std::vector<std::string> all, ListDirectory(checkpoints));
  for (const std::string& name : all) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

// A cut that is being written, or was given up. Nothing is wrong with the run.
bool IsUnfinishedCut(const std::string& checkpoints, const std::string& name) {
  const bool is_cut = StepOfCheckpoint(name) > 0 || name == "stopped";
  return is_cut && absl::IsNotFound(ReadCutRecord(JoinPath(checkpoints, name)).status());
}

// Returns why the checkpoint cannot be used.
absl::Status Describe(const std::string& checkpoints, const std::string& name, absl::Time now, std::ostream* out) {
  const absl::StatusOr<CheckpointSummary> summary = SummarizeCheckpoint(JoinPath(checkpoints, name));
  if (summary.ok()) {
    *out << FormatCheckpoint(name, *summary, now) << std::endl;
    return absl::OkStatus();
  }
  const absl::string_view why = summary.status().message();
  if (absl::IsNotFound(summary.status()) && IsUnfinishedCut(checkpoints, name)) {
    *out << "Checkpoint " << name << " is not complete: " << why << "\n" << std::endl;
    return absl::OkStatus();
  }
  *out << "Checkpoint " << name << " cannot be used: " << why << "\n" << std::endl;
  return Annotate(summary.status(), name);
}

absl::Status NoCheckpoint(const std::string& checkpoints, const std::string& wanted) {
  const std::vector<std::string> names = ListDirectory(checkpoints).value_or(std::vector<std::string>());
  return absl::NotFoundError(
      absl::StrCat(checkpoints, ": there is no checkpoint ", wanted, "; ",
                   names.empty() ? "there is none" : absl::StrCat("there are: ", absl::StrJoin(names, ", "))));
}

}  // namespace

std::string CheckpointsOfRun(const std::string& run_directory) {
  v1::JobConfig config;
  google::protobuf::TextFormat::Parser parser;
  // Of a newer program.
  parser.AllowUnknownField(true);
  const std::string text = ReadFile(JoinPath(run_directory, "job.textproto")).value_or("");
  if (!parser.ParseFromString(text, &config)) config.Clear();
  config.set_run_directory(run_directory);
  return CheckpointDirectory(config);
}

absl::StatusOr<std::string> FindCheckpoint(const std::string& run_directory, const std::string& name) {
  const std::string checkpoints = CheckpointsOfRun(run_directory);
  if (!name.empty()) {
    if (FileExists(JoinPath(checkpoints, name))) return name;
    return NoCheckpoint(checkpoints, name);
  }
  const std::vector<std::string> complete = ListCheckpoints(checkpoints);
  if (!complete.empty() && complete.back() != "step0") return complete.back();
  return NoCheckpoint(checkpoints, "final or stopped, and no complete one of a step");
}

absl::Status DescribeCheckpoints(const std::string& run_directory, const std::string& name, absl::Time now,
                                 std::ostream* out) {
  const std::string checkpoints = CheckpointsOfRun(run_directory);
  absl::StatusOr<std::vector<std::string>> names = NamesIn(checkpoints);
  if (!names.ok()) return Annotate(names.status(), absl::StrCat("RUN ", run_directory));
  if (!name.empty()) {
    if (std::find(names->begin(), names->end(), name) == names->end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--name: value \"", name, "\"; allowed: ", absl::StrJoin(*names, ", ")));
    }
    names = std::vector<std::string>{name};
  }
  if (names->empty()) return absl::NotFoundError(absl::StrCat(checkpoints, ": holds no checkpoint"));
  absl::Status bad;
  // The others may be good.
  for (const std::string& one : *names) bad.Update(Describe(checkpoints, one, now, out));
  // Whatever the reason, it is the checkpoint's and not the command line's.
  return bad.ok() ? bad : absl::DataLossError(bad.message());
}

}  // namespace rubato
