#include "cli/capacity/calibration_run.h"

#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/capacity/recorded_steps.h"
#include "common/config/load.h"
#include "common/status.h"
#include "common/storage/file.h"

namespace rubato::capacity {
namespace {

// Fewer say nothing of how steps differ.
constexpr size_t kStepsMin = 20;

// By worker, first chunk, and the step that it begins.
using RequestKey = std::tuple<uint32_t, uint32_t, int64_t>;
using Requests = std::multimap<RequestKey, const RecordedRequest*>;

std::optional<uint32_t> IndexOf(absl::string_view task, absl::string_view role) {
  uint32_t index = 0;
  if (!absl::ConsumePrefix(&task, role) || !absl::SimpleAtoi(task, &index)) return std::nullopt;
  return index;
}

// "batch 3 (server 0)".
std::optional<size_t> BatchOf(absl::string_view row) {
  size_t batch = 0;
  if (!absl::ConsumePrefix(&row, "batch ") || !absl::SimpleAtoi(row.substr(0, row.find(' ')), &batch)) {
    return std::nullopt;
  }
  return batch;
}

size_t BatchesOf(const TaskTrace& worker) {
  size_t batches = 0;
  for (const TraceRow& row : worker.rows) {
    if (const auto batch = BatchOf(row.name)) batches = std::max(batches, *batch + 1);
  }
  return batches;
}

// A run's messages may have been larger than its config says, where servers read tensors in place.
absl::StatusOr<JobLayout> LayoutOfRun(const v1::JobConfig& config, size_t batches, bool* in_place) {
  for (const bool shared : {true, false}) {
    if (shared && config.cluster().shared_memory() == v1::ClusterConfig::OFF) continue;
    RUBATO_ASSIGN_OR_RETURN(JobLayout layout, MakeJobLayout(config, shared));
    if (layout.batching.batches.size() != batches) continue;
    *in_place = shared;
    return layout;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a worker's trace has ", batches, " batches of chunks, other than its config gives"));
}

void AddTransports(const TaskTrace& trace, uint32_t worker, const JobLayout& layout, const Requests& requests,
                   std::vector<RecordedTransport>* transports) {
  for (const TraceRow& row : trace.rows) {
    const auto batch = BatchOf(row.name);
    if (!batch.has_value() || *batch >= layout.batching.batches.size()) continue;
    const uint32_t first_chunk = layout.batching.batches[*batch].chunks.front();
    for (const TraceSpan& span : row.spans) {
      if (span.category != "exchange") continue;
      const auto [begin, end] = requests.equal_range({worker, first_chunk, span.step});
      // A request that was repeated has several.
      if (begin == end || std::next(begin) != end) continue;
      const SimTime at_server = begin->second->sent - begin->second->arrived;
      if (span.length() < at_server) continue;
      transports->push_back({span.sent_bytes + span.received_bytes, span.length() - at_server});
    }
  }
}

absl::Status CheckEnough(const CalibrationRun& run) {
  if (run.steps.size() < kStepsMin) {
    return absl::InvalidArgumentError(
        absl::StrCat("traces have ", run.steps.size(), " whole steps of this model's layers; needed: ", kStepsMin));
  }
  if (run.transports.empty()) {
    return absl::InvalidArgumentError("traces have no exchange of a worker that a server's trace has, too");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CalibrationRun> MakeCalibrationRun(const std::string& run_directory, const v1::JobConfig& config,
                                                  const std::vector<TaskTrace>& traces) {
  CalibrationRun run;
  run.directory = run_directory;
  size_t batches = 0;
  for (const TaskTrace& trace : traces) batches = std::max(batches, BatchesOf(trace));
  RUBATO_ASSIGN_OR_RETURN(run.layout, LayoutOfRun(config, batches, &run.in_place));
  for (const TaskTrace& trace : traces) {
    run.dropped_spans += trace.dropped_spans;
    if (IndexOf(trace.task, "server ").has_value()) run.servers.push_back(ReadRecordedServer(trace));
  }
  Requests requests;
  for (const RecordedServer& server : run.servers) {
    for (const RecordedRequest& request : server.requests) {
      requests.emplace(RequestKey{request.worker, request.first_chunk, request.step}, &request);
    }
  }
  for (const TaskTrace& trace : traces) {
    const std::optional<uint32_t> worker = IndexOf(trace.task, "worker ");
    if (!worker.has_value()) continue;
    for (RecordedStep& step : ReadRecordedSteps(trace, run.layout.layers)) run.steps.push_back(std::move(step));
    run.worker_steps_per_second += StepRateOf(trace);
    AddTransports(trace, *worker, run.layout, requests, &run.transports);
  }
  RUBATO_RETURN_IF_ERROR(CheckEnough(run));
  return run;
}

absl::StatusOr<CalibrationRun> ReadCalibrationRun(const std::string& run_directory, const std::string& traces) {
  RUBATO_ASSIGN_OR_RETURN(const v1::JobConfig config, LoadJobConfig(JoinPath(run_directory, "job.textproto"), {}));
  RUBATO_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(traces));
  std::vector<TaskTrace> tasks;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, "server-") && !absl::StartsWith(name, "worker-")) continue;
    if (!absl::EndsWith(name, ".json")) continue;
    const std::string path = JoinPath(traces, name);
    RUBATO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    RUBATO_ASSIGN_OR_RETURN(TaskTrace task, ParseTaskTrace(path, text));
    tasks.push_back(std::move(task));
  }
  absl::StatusOr<CalibrationRun> run = MakeCalibrationRun(run_directory, config, tasks);
  return run.ok() ? std::move(run) : Annotate(run.status(), traces);
}

}  // namespace rubato::capacity
