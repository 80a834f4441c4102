#include "cli/command/job_trace.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/trace/merged_trace.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

constexpr char kMerged[] = "merged.json";
// A heartbeat says that a trace is there; before, it has to be written.
constexpr absl::Duration kTimeout = absl::Seconds(20);
constexpr absl::Duration kPoll = absl::Milliseconds(100);
// While it is recorded, only to notice that the job has ended.
constexpr absl::Duration kRecordingPoll = absl::Seconds(1);
// A coordinator that does not answer this often in a row has ended with its job, and the traces have too.
constexpr int kUnanswered = 20;

// Waits until everybody who was told to record says that it has, or is gone; what went wrong is told to the user.
void AwaitTraces(CoordinatorClient* coordinator, const v1::TraceJobReply& trace, absl::Duration recording,
                 const Environment& environment) {
  std::set<std::string> missing;
  for (const v1::TaskId& task : trace.tasks()) missing.insert(TaskName(task));
  const absl::Time recorded = environment.clock->Now() + recording, deadline = recorded + kTimeout;
  int unanswered = 0;
  while (!missing.empty() && unanswered < kUnanswered && environment.clock->Now() < deadline) {
    const absl::Duration left = unanswered > 0 ? kPoll : recorded - environment.clock->Now();
    environment.clock->Sleep(std::clamp(left, kPoll, kRecordingPoll));
    absl::StatusOr<v1::JobStatus> status = coordinator->GetStatus(absl::Seconds(10));
    unanswered = status.ok() ? 0 : unanswered + 1;
    if (!status.ok()) continue;
    for (const v1::TaskStatus& task : status->tasks()) {
      const bool has_it = task.trace().id() == trace.id();
      if (!has_it && task.state() == v1::TaskStatus::ALIVE) continue;
      if (missing.erase(TaskName(task.task())) == 0) continue;
      if (has_it && task.trace().error().empty()) continue;
      *environment.err << TaskName(task.task()) << " has no trace: " << (has_it ? task.trace().error() : "it is gone")
                       << std::endl;
    }
  }
  if (!missing.empty()) *environment.err << "Not heard of: " << absl::StrJoin(missing, ", ") << std::endl;
}

// The tasks' traces in a directory.
absl::StatusOr<std::vector<std::string>> TraceFiles(const std::string& directory) {
  std::vector<std::string> files;
  RUBATO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const bool of_a_task = absl::StartsWith(name, "server-") || absl::StartsWith(name, "worker-");
    if (of_a_task && absl::EndsWith(name, ".json")) files.push_back(JoinPath(directory, name));
  }
  return files;
}

void Summarize(const MergedTrace& merged, const std::string& output, const Environment& environment) {
  for (const MergedTrace::Task& task : merged.Tasks()) {
    *environment.out << absl::StrFormat("  %s: %d spans", task.name, task.spans);
    if (task.dropped > 0) *environment.out << absl::StrFormat(", %d more were too much to keep", task.dropped);
    if (task.correction != absl::ZeroDuration()) {
      *environment.out << absl::StrFormat(", its clock moved by %.3f ms", absl::ToDoubleMilliseconds(task.correction));
    }
    *environment.out << (task.measured ? absl::StrFormat(", to %.3f ms\n", absl::ToDoubleMilliseconds(task.error))
                                       : ", its clock was not compared with the coordinator's\n");
  }
  const MergedTrace::Flows flows = merged.CountFlows();
  *environment.out << "  " << flows.whole << " pushes from worker to server, " << flows.backward
                   << " of them applied before they were sent: "
                   << (flows.backward == 0 ? "the clocks agree" : "the clocks differ by more than was measured") << "\n"
                   << "Wrote " << output << "; open it in Perfetto or chrome://tracing" << std::endl;
}

}  // namespace

std::string TraceDirectoryOf(const std::string& run_directory, uint64_t id) {
  const std::string traces = JoinPath(run_directory, "traces");
  return id == 0 ? traces : JoinPath(traces, absl::StrCat(id));
}

absl::StatusOr<std::string> LatestTraces(const std::string& run_directory) {
  const std::string traces = TraceDirectoryOf(run_directory, 0);
  if (!FileExists(traces)) {
    return absl::NotFoundError(absl::StrCat(traces,
                                            " is not there: the job does not train now, and was not recorded; "
                                            "set training.trace_steps, or call rubato trace while it trains"));
  }
  RUBATO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(traces));
  uint64_t latest = 0;
  for (const std::string& name : names) {
    uint64_t id = 0;
    if (absl::SimpleAtoi(name, &id)) latest = std::max(latest, id);
  }
  return latest == 0 ? traces : TraceDirectoryOf(run_directory, latest);
}

absl::StatusOr<uint64_t> RecordTrace(CoordinatorClient* coordinator, double seconds, const Environment& environment) {
  RUBATO_ASSIGN_OR_RETURN(v1::TraceJobReply trace, coordinator->TraceJob(seconds, absl::Seconds(10)));
  *environment.out << "Recording " << trace.tasks_size() << " tasks for " << seconds << " s" << std::endl;
  AwaitTraces(coordinator, trace, absl::Seconds(seconds), environment);
  return trace.id();
}

absl::Status MergeTraces(const std::string& directory, std::string output, const Environment& environment) {
  MergedTrace merged;
  RUBATO_ASSIGN_OR_RETURN(const std::vector<std::string> files, TraceFiles(directory));
  if (files.empty()) return absl::NotFoundError(absl::StrCat(directory, ": holds no trace"));
  for (const std::string& file : files) {
    RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    RUBATO_RETURN_IF_ERROR(merged.Add(file, text));
  }
  if (output.empty()) output = JoinPath(directory, kMerged);
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(output, merged.ToJson()));
  Summarize(merged, output, environment);
  return absl::OkStatus();
}

}  // namespace rubato
