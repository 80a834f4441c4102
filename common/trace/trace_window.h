#ifndef RUBATO_COMMON_TRACE_TRACE_WINDOW_H_
#define RUBATO_COMMON_TRACE_TRACE_WINDOW_H_

#include <cstdint>
#include <string>
#include <utility>

#include "common/log.h"
#include "common/trace/trace_recorder.h"

namespace rubato {

// Lets a recorder record some of a task's steps and writes them to a file: those numbered [after, after + steps),
// counted from 0 as the task makes them; later ones, if another trace is being recorded then. Used by one thread at
// a time.
//
//   TraceWindow window({.recorder = &trace, .steps = 20, .after = 100, .directory = "runs/job/traces",
//                       .file = "worker-1.json", .log = log});
//   for (...) { window.BeginStep(steps_made); ... }
//   window.Finish();
//
// A file that cannot be written is a warning in the log: the work goes on.
class TraceWindow {
 public:
  struct Options {
    TraceRecorder* recorder = nullptr;
    int64_t steps = 0;
    int64_t after = 0;
    // Created, with its parents, if it is not there.
    std::string directory;
    std::string file;
    Logger* log = nullptr;
  };

  explicit TraceWindow(Options options) : options_(std::move(options)) {}

  // The task has made `steps_made` steps and begins another one. It may say so repeatedly.
  void BeginStep(int64_t steps_made);
  // There will be no further step: writes what there is.
  void Finish();

 private:
  void Write();

  const Options options_;
  // Steps made when recording began; -1 before.
  int64_t begun_at_ = -1;
  bool written_ = false;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_TRACE_TRACE_WINDOW_H_
