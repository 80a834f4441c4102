#ifndef RUBATO_COMMON_LOG_H_
#define RUBATO_COMMON_LOG_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace rubato {

// Writes one line per event to standard error: "<UTC time> <severity> <who>] <message>". Thread-safe.
//
//   Logger log("worker 1", &clock);
//   log.Info(absl::StrCat("step ", step, " waits for worker 0"));
class Logger {
 public:
  // `who` is the task's role and index. `clock` outlives the logger.
  Logger(std::string who, const Clock* clock) : who_(std::move(who)), clock_(clock) {}

  void Info(absl::string_view message) { Write('I', message); }
  void Warning(absl::string_view message) { Write('W', message); }
  void Error(absl::string_view message) { Write('E', message); }

  // The message of the last warning or error; empty when there was none.
  std::string last_problem() {
    MutexLock lock(mu_);
    return last_problem_;
  }

 private:
  void Write(char severity, absl::string_view message);

  const std::string who_;
  const Clock* const clock_;
  Mutex mu_;
  std::string last_problem_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rubato

#endif  // RUBATO_COMMON_LOG_H_
