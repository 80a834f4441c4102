#include "common/trace/trace_files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/storage/file.h"
#include "common/task.h"

namespace rubato {

std::string TraceDirectory(const v1::JobConfig& config) { return JoinPath(config.run_directory(), "traces"); }

std::string TraceFile(const v1::TaskId& task) {
  return absl::StrCat(absl::StrReplaceAll(TaskName(task), {{" ", "-"}}), ".json");
}

}  // namespace rubato
