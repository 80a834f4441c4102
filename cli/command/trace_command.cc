#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/command/commands.h"
#include "cli/command/run_directory.h"
#include "cli/launch/coordinator_client.h"
#include "cli/trace/merged_trace.h"
#include "common/status.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {
namespace {

constexpr char kMerged[] = "merged.json";
// A heartbeat says that a trace is there; before, it has to be written.
constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr absl::Duration kPoll = absl::Milliseconds(100);
// A coordinator that does not answer this often in a row has ended with its job, and the traces have too.
constexpr int kUnanswered = 20;

struct TraceOptions {
  std::string run_directory;
  double seconds = 5;
  std::string output;
};

// Waits until everybody who was told to record says that it has, or is gone; what went wrong is told to the user.
absl::Status AwaitTraces(CoordinatorClient* coordinator, const v1::TraceJobReply& trace, absl::Duration patience,
                         const Environment& environment) {
  std::set<std::string> missing;
  for (const v1::TaskId& task : trace.tasks()) missing.insert(TaskName(task));
  const absl::Time deadline = environment.clock->Now() + patience;
  int unanswered = 0;
  while (!missing.empty() && unanswered < kUnanswered && environment.clock->Now() < deadline) {
    environment.clock->Sleep(kPoll);
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
  return absl::OkStatus();
}

// Has a running job recorded. False: there is none that trains.
absl::StatusOr<bool> RecordRunning(const TraceOptions& options, const Environment& environment, uint64_t* id) {
  absl::StatusOr<std::string> address = CoordinatorAddress(options.run_directory);
  if (!address.ok()) return false;
  CoordinatorClient coordinator(*address);
  absl::StatusOr<v1::JobStatus> status = coordinator.GetStatus(absl::Seconds(2));
  if (!status.ok() || status->phase() != v1::JobStatus::TRAINING) return false;
  RUBATO_ASSIGN_OR_RETURN(v1::TraceJobReply trace, coordinator.TraceJob(options.seconds, absl::Seconds(10)));
  *environment.out << "Recording " << trace.tasks_size() << " tasks for " << options.seconds << " s" << std::endl;
  RUBATO_RETURN_IF_ERROR(AwaitTraces(&coordinator, trace, absl::Seconds(options.seconds) + kPatience, environment));
  *id = trace.id();
  return true;
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

// Where a run's latest traces are: of training.trace_steps, or of the last command.
absl::StatusOr<std::string> LatestTraces(const std::string& traces) {
  if (!FileExists(traces)) {
    return absl::NotFoundError(absl::StrCat(traces,
                                            " is not there: the job does not train now, and was not recorded; "
                                            "set training.trace_steps, or call this while it trains"));
  }
  RUBATO_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(traces));
  uint64_t latest = 0;
  for (const std::string& name : names) {
    uint64_t id = 0;
    if (absl::SimpleAtoi(name, &id)) latest = std::max(latest, id);
  }
  return latest == 0 ? traces : JoinPath(traces, absl::StrCat(latest));
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

absl::Status Trace(const TraceOptions& options, const Environment& environment) {
  std::error_code error;
  if (!std::filesystem::is_directory(options.run_directory, error)) {
    return absl::NotFoundError(
        absl::StrCat("RUN: value \"", options.run_directory, "\"; allowed: the directory of a run"));
  }
  const std::string traces = JoinPath(options.run_directory, "traces");
  uint64_t id = 0;
  RUBATO_ASSIGN_OR_RETURN(const bool running, RecordRunning(options, environment, &id));
  std::string directory = JoinPath(traces, absl::StrCat(id));
  if (!running) {
    RUBATO_ASSIGN_OR_RETURN(directory, LatestTraces(traces));
  }
  if (!FileExists(directory)) {
    return absl::UnavailableError(absl::StrCat(directory,
                                               ": no task has written there; do they run on other machines, "
                                               "with a run directory of their own?"));
  }
  MergedTrace merged;
  RUBATO_ASSIGN_OR_RETURN(const std::vector<std::string> files, TraceFiles(directory));
  if (files.empty()) return absl::NotFoundError(absl::StrCat(directory, ": holds no trace"));
  for (const std::string& file : files) {
    RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
    RUBATO_RETURN_IF_ERROR(merged.Add(file, text));
  }
  const std::string output = options.output.empty() ? JoinPath(directory, kMerged) : options.output;
  RUBATO_RETURN_IF_ERROR(WriteFileAtomically(output, merged.ToJson()));
  Summarize(merged, output, environment);
  return absl::OkStatus();
}

}  // namespace

void AddTraceCommand(CLI::App* app, const Environment* environment, int* exit_code) {
  CLI::App* command = app->add_subcommand(
      "trace", "One timeline of all tasks: of a running job, or of what a finished one has recorded");
  auto options = std::make_shared<TraceOptions>();
  command->add_option("RUN", options->run_directory, "The run's directory")->required();
  command->add_option("--seconds", options->seconds, "How long a running job is recorded, up to 600")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 600.0));
  command->add_option("--output", options->output, "The file to write; otherwise merged.json beside the traces");
  command->callback([options, environment, exit_code] {
    absl::Status status = Trace(*options, *environment);
    *exit_code = status.ok() ? kExitOk : ReportError(*environment, "trace", status);
  });
}

}  // namespace rubato
