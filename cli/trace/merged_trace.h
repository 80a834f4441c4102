#ifndef RUBATO_CLI_TRACE_MERGED_TRACE_H_
#define RUBATO_CLI_TRACE_MERGED_TRACE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace rubato {

// Puts the traces of a job's tasks (docs/formats.md) together into one: a process for each task, servers first, all on
// the coordinator's clock. Arrows of which an end is missing, because it lies outside of the time that was recorded,
// are left out. Pure; not thread-safe.
//
//   MergedTrace merged;
//   RUBATO_RETURN_IF_ERROR(merged.Add("server-0.json", text));
//   RUBATO_RETURN_IF_ERROR(WriteFileAtomically("merged.json", merged.ToJson()));
//
// A task's clock is corrected by what it has measured against the coordinator's. If that is less than the error of
// the measurement, the clocks agree better than could be measured, as on one machine, and are left as they are.
class MergedTrace {
 public:
  struct Task {
    std::string name;
    int64_t spans = 0;
    int64_t dropped = 0;
    // What was added to its times, and by how much that may be wrong; `measured` is false if the task did not know.
    absl::Duration correction;
    absl::Duration error;
    bool measured = false;
  };
  // Arrows from a push to where it was applied.
  struct Flows {
    int64_t whole = 0;
    // Of those: which end before they begin. More than a few say that the clocks are not as close as was measured.
    int64_t backward = 0;
    // One end alone.
    int64_t torn = 0;
  };

  // A task's file; `file` names it in errors. InvalidArgument: it is no trace of a task, and why; nothing was added.
  absl::Status Add(absl::string_view file, const std::string& text);

  // A JSON object in Chrome's trace event format.
  std::string ToJson() const;

  // In the order of the processes.
  std::vector<Task> Tasks() const;
  Flows CountFlows() const;

 private:
  struct Part {
    Task task;
    // Of its ts 0, on the coordinator's clock, in microseconds since 1970. As float64 they are exact to 0.25.
    double epoch = 0;
    nlohmann::ordered_json events;
  };
  struct Ends {
    bool begins = false, arrives = false;
    double from = 0, to = 0;
  };

  std::map<std::string, Ends> FlowEnds() const;

  // By role and index: servers, then workers, then what else there may be.
  std::map<std::pair<int, std::string>, Part> parts_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_TRACE_MERGED_TRACE_H_
