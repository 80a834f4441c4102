#ifndef RUBATO_COMMON_LOG_H_
#define RUBATO_COMMON_LOG_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace rubato {

enum class LogFormat { kText, kJson };

// One event, as a line of the log says it.
struct LogEntry {
  absl::Time time;
  // 'I', 'W' or 'E'.
  char severity = 'I';
  // "worker 1", or another name if it is no task that speaks.
  absl::string_view who;
  // Of the task; 0: unknown.
  uint64_t incarnation = 0;
  // The plan that the task works under, and its step; generation 0: there is no plan yet.
  uint64_t generation = 0;
  int64_t step = 0;
  absl::string_view message;
};

// The line, with its newline. Pure.
// kText: "2026-01-31T12:00:00.123Z W worker 1 89abcdef g2 s140] message"; incarnation (its first half), generation and
// step if they are known.
// kJson: {"time":"...","severity":"warning","role":"worker","index":1,"incarnation":"0123456789abcdef","generation":2,
// "step":140,"message":"..."}; what is not UTF-8 is replaced.
std::string FormatLogLine(const LogEntry& entry, LogFormat format);

// Writes one line per event to standard error. Thread-safe.
//
//   Logger log("worker 1", &clock);
//   log.Info(absl::StrCat("step ", step, " waits for worker 0"));
class Logger {
 public:
  struct Options {
    LogFormat format = LogFormat::kText;
    // Of the task; 0: not told.
    uint64_t incarnation = 0;
    // Warnings and errors alone.
    bool quiet = false;
  };

  // `who` is the task's role and index. `clock` outlives the logger.
  Logger(std::string who, const Clock* clock) : Logger(std::move(who), clock, Options()) {}
  Logger(std::string who, const Clock* clock, Options options)
      : who_(std::move(who)), clock_(clock), options_(options) {}

  void Info(absl::string_view message) { Write('I', message); }
  void Warning(absl::string_view message) { Write('W', message); }
  void Error(absl::string_view message) { Write('E', message); }

  // The message of the last warning or error; empty when there was none.
  std::string last_problem() {
    MutexLock lock(mu_);
    return last_problem_;
  }
  // Where the task is, for the lines that follow.
  void SetPosition(uint64_t generation, int64_t step);

 private:
  void Write(char severity, absl::string_view message);

  const std::string who_;
  const Clock* const clock_;
  const Options options_;
  Mutex mu_;
  std::string last_problem_ ABSL_GUARDED_BY(mu_);
  uint64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t step_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_LOG_H_
