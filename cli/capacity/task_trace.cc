#include "cli/capacity/task_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace rubato::capacity {
namespace {

using Json = nlohmann::json;

absl::Status NotATrace(absl::string_view file, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": is no trace of a task: ", why));
}

// Microseconds with three digits after the point.
SimTime TimeOf(const Json& microseconds) {
  return static_cast<SimTime>(std::llround(microseconds.get<double>() * 1000));
}

int64_t DetailOf(const Json& details, const char* key) {
  const auto found = details.find(key);
  return found != details.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
}

bool HasText(const Json& event, const char* key) { return event.contains(key) && event[key].is_string(); }
bool HasNumber(const Json& event, const char* key) { return event.contains(key) && event[key].is_number(); }

TraceSpan SpanOf(const Json& event) {
  TraceSpan span;
  span.name = event["name"];
  if (HasText(event, "cat")) span.category = event["cat"];
  span.begin = TimeOf(event["ts"]);
  span.end = span.begin + TimeOf(event["dur"]);
  const auto details = event.find("args");
  if (details == event.end() || !details->is_object()) return span;
  span.step = DetailOf(*details, "step");
  span.worker = DetailOf(*details, "worker");
  span.chunk = DetailOf(*details, "chunk");
  span.contributions = DetailOf(*details, "contributions");
  span.sent_bytes = DetailOf(*details, "sent_bytes");
  span.received_bytes = DetailOf(*details, "received_bytes");
  if (HasText(*details, "outcome")) span.outcome = (*details)["outcome"];
  return span;
}

// Spans and names of rows are all that counts here; arrows are left out.
absl::Status AddEvent(absl::string_view file, const Json& event, std::map<int64_t, TraceRow>* rows) {
  if (!event.is_object() || !HasText(event, "ph") || !HasText(event, "name") || !HasNumber(event, "tid")) {
    return NotATrace(file, "traceEvents has an entry without ph, name or tid");
  }
  TraceRow& row = (*rows)[event["tid"].get<int64_t>()];
  if (event["name"] == "thread_name") {
    if (event.contains("args") && event["args"].is_object() && HasText(event["args"], "name")) {
      row.name = event["args"]["name"];
    }
  } else if (event["ph"] == "X") {
    if (!HasNumber(event, "ts") || !HasNumber(event, "dur")) return NotATrace(file, "a span without ts or dur");
    row.spans.push_back(SpanOf(event));
  }
  return absl::OkStatus();
}

}  // namespace

const TraceRow* TaskTrace::Find(absl::string_view row) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [row](const TraceRow& one) { return one.name == row; });
  return found == rows.end() ? nullptr : &*found;
}

absl::StatusOr<TaskTrace> ParseTaskTrace(absl::string_view file, const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("traceEvents") || !json["traceEvents"].is_array() ||
      !json.contains("otherData") || !json["otherData"].is_object() || !HasText(json["otherData"], "task")) {
    return NotATrace(file, "no JSON object with traceEvents and otherData.task");
  }
  TaskTrace trace;
  trace.task = json["otherData"]["task"];
  trace.dropped_spans = std::max<int64_t>(0, DetailOf(json["otherData"], "dropped_spans"));
  std::map<int64_t, TraceRow> rows;
  for (const Json& event : json["traceEvents"]) {
    if (absl::Status status = AddEvent(file, event, &rows); !status.ok()) return status;
  }
  for (auto& [number, row] : rows) {
    std::stable_sort(row.spans.begin(), row.spans.end(), [](const TraceSpan& a, const TraceSpan& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    if (!row.spans.empty()) trace.rows.push_back(std::move(row));
  }
  return trace;
}

}  // namespace rubato::capacity
