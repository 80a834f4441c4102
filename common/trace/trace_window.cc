#include "common/trace/trace_window.h"

#include "absl/strings/str_cat.h"
#include "common/storage/file.h"

namespace rubato {

void TraceWindow::BeginStep(int64_t steps_made) {
  if (written_ || options_.steps == 0 || steps_made < options_.after) return;
  if (begun_at_ < 0) {
    if (options_.recorder->Start()) begun_at_ = steps_made;
  } else if (steps_made - begun_at_ >= options_.steps) {
    Write();
  }
}

void TraceWindow::Finish() {
  if (written_ || options_.steps == 0) return;
  if (begun_at_ >= 0) return Write();
  options_.log->Warning(
      absl::StrCat("no trace was written: training ended before training.trace_after_steps, ", options_.after));
}

void TraceWindow::Write() {
  written_ = true;
  options_.recorder->Stop();
  const std::string path = JoinPath(options_.directory, options_.file);
  absl::Status status = MakeDirectories(options_.directory);
  if (status.ok()) status = options_.recorder->Write(path);
  if (status.ok()) {
    options_.log->Info(absl::StrCat("wrote the trace ", path));
  } else {
    options_.log->Warning(absl::StrCat("the trace could not be written: ", status.message()));
  }
}

}  // namespace rubato
