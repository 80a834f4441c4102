#ifndef RUBATO_CLI_CAPACITY_TASK_TRACE_H_
#define RUBATO_CLI_CAPACITY_TASK_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cli/capacity/event_queue.h"

namespace rubato::capacity {

// A span of a task's timeline (docs/formats.md, "traces/"). Details that it does not have are -1.
struct TraceSpan {
  std::string name;
  std::string category;
  SimTime begin = 0;  // On the task's own clock.
  SimTime end = 0;
  int64_t step = -1;
  int64_t worker = -1;
  int64_t chunk = -1;
  int64_t contributions = -1;
  int64_t sent_bytes = -1;
  int64_t received_bytes = -1;
  std::string outcome;

  SimTime length() const { return end - begin; }
};

// A row of the timeline: its spans in order of their begin, the longer one first.
struct TraceRow {
  std::string name;
  std::vector<TraceSpan> spans;
};

// A task's trace. Pure data.
struct TaskTrace {
  // "worker 1".
  std::string task;
  int64_t dropped_spans = 0;
  std::vector<TraceRow> rows;

  // Null if there is none of that name.
  const TraceRow* Find(absl::string_view row) const;
};

// Of the text of a task's trace file; `file` stands for it in messages. InvalidArgument: it is none.
absl::StatusOr<TaskTrace> ParseTaskTrace(absl::string_view file, const std::string& text);

}  // namespace rubato::capacity

#endif  // RUBATO_CLI_CAPACITY_TASK_TRACE_H_
