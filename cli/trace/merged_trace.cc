#include "cli/trace/merged_trace.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace rubato {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool IsFlow(const Json& event) { return event["ph"] == "s" || event["ph"] == "f"; }

int OrderOf(const std::string& task) {
  if (absl::StartsWith(task, "server ")) return 0;
  return absl::StartsWith(task, "worker ") ? 1 : 2;
}

absl::Status CheckEvent(const Json& event) {
  const auto is_text = [&](const char* key) { return event.contains(key) && event[key].is_string(); };
  const auto is_number = [&](const char* key) { return event.contains(key) && event[key].is_number(); };
  if (!event.is_object() || !is_text("ph") || !is_text("name")) {
    return absl::InvalidArgumentError("traceEvents: an entry without ph and name");
  }
  if (event["ph"] == "M") return absl::OkStatus();
  if (!is_number("ts") || !is_number("tid") || (event["ph"] == "X" && !is_number("dur")) ||
      (IsFlow(event) && !is_text("id"))) {
    return absl::InvalidArgumentError(absl::StrCat("traceEvents: ", event["name"].get<std::string>(),
                                                   ": ts, tid, dur or id is missing or of another type"));
  }
  return absl::OkStatus();
}

absl::Status CheckTrace(const Json& trace) {
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array() ||
      !trace.contains("otherData") || !trace["otherData"].is_object()) {
    return absl::InvalidArgumentError("is no JSON object with traceEvents and otherData");
  }
  const Json& data = trace["otherData"];
  if (!data.contains("task") || !data["task"].is_string() || !data.contains("epoch_unix_microseconds") ||
      !data["epoch_unix_microseconds"].is_number()) {
    return absl::InvalidArgumentError("otherData: task or epoch_unix_microseconds is missing");
  }
  for (const char* field : {"dropped_spans", "clock_offset_microseconds", "clock_error_microseconds"}) {
    if (data.contains(field) && !data[field].is_number()) {
      return absl::InvalidArgumentError(absl::StrCat("otherData.", field, ": is no number"));
    }
  }
  for (const Json& event : trace["traceEvents"]) RUBATO_RETURN_IF_ERROR(CheckEvent(event));
  return absl::OkStatus();
}

}  // namespace

absl::Status MergedTrace::Add(absl::string_view file, const std::string& text) {
  Json trace = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (trace.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(file, ": is no JSON"));
  RUBATO_RETURN_IF_ERROR(Annotate(CheckTrace(trace), file));
  const Json& data = trace["otherData"];
  Part part;
  part.task.name = data["task"];
  if (parts_.contains({OrderOf(part.task.name), part.task.name})) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": there is a trace of ", part.task.name, " already"));
  }
  part.task.dropped = data.value("dropped_spans", int64_t{0});
  part.task.measured = data.contains("clock_offset_microseconds");
  const double offset = data.value("clock_offset_microseconds", 0.0);
  const double error = data.value("clock_error_microseconds", 0.0);
  part.task.error = absl::Microseconds(error);
  const double correction = std::abs(offset) <= error ? 0 : offset;
  part.task.correction = absl::Microseconds(correction);
  part.epoch = data["epoch_unix_microseconds"].get<double>() + correction;
  part.events = std::move(trace["traceEvents"]);
  part.task.spans =
      std::count_if(part.events.begin(), part.events.end(), [](const Json& event) { return event["ph"] == "X"; });
  parts_.emplace(std::make_pair(OrderOf(part.task.name), part.task.name), std::move(part));
  return absl::OkStatus();
}

std::vector<MergedTrace::Task> MergedTrace::Tasks() const {
  std::vector<Task> tasks;
  for (const auto& [key, part] : parts_) tasks.push_back(part.task);
  return tasks;
}

std::map<std::string, MergedTrace::Ends> MergedTrace::FlowEnds() const {
  std::map<std::string, Ends> flows;
  for (const auto& [key, part] : parts_) {
    for (const Json& event : part.events) {
      if (!IsFlow(event)) continue;
      Ends& ends = flows[event["id"].get<std::string>()];
      (event["ph"] == "s" ? ends.begins : ends.arrives) = true;
      (event["ph"] == "s" ? ends.from : ends.to) = part.epoch + event["ts"].get<double>();
    }
  }
  return flows;
}

MergedTrace::Flows MergedTrace::CountFlows() const {
  Flows flows;
  for (const auto& [id, ends] : FlowEnds()) {
    if (!ends.begins || !ends.arrives) {
      ++flows.torn;
    } else {
      ++flows.whole;
      if (ends.to < ends.from) ++flows.backward;
    }
  }
  return flows;
}

std::string MergedTrace::ToJson() const {
  double epoch = std::numeric_limits<double>::infinity();
  Json tasks = Json::array();
  for (const auto& [key, part] : parts_) {
    epoch = std::min(epoch, part.epoch);
    tasks.push_back({{"task", part.task.name},
                     {"clock_correction_microseconds", absl::ToDoubleMicroseconds(part.task.correction)},
                     {"clock_error_microseconds", absl::ToDoubleMicroseconds(part.task.error)},
                     {"dropped_spans", part.task.dropped}});
  }
  const std::map<std::string, Ends> flows = FlowEnds();
  std::string text =
      absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":", Dump({{"tasks", tasks}}), ",\"traceEvents\":[\n");
  bool first = true;
  int process = 0;
  for (const auto& [key, part] : parts_) {
    ++process;
    const auto append = [&](const Json& event) {
      absl::StrAppend(&text, first ? "" : ",\n", Dump(event));
      first = false;
    };
    append({{"name", "process_sort_index"}, {"ph", "M"}, {"pid", process}, {"args", {{"sort_index", process}}}});
    for (Json event : part.events) {
      event["pid"] = process;
      if (event["ph"] != "M") event["ts"] = event["ts"].get<double>() + (part.epoch - epoch);
      if (IsFlow(event)) {
        const Ends& ends = flows.at(event["id"].get<std::string>());
        if (!ends.begins || !ends.arrives) continue;
      }
      append(event);
    }
  }
  return text + "\n]}\n";
}

}  // namespace rubato
