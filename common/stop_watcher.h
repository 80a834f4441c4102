#ifndef RUBATO_COMMON_STOP_WATCHER_H_
#define RUBATO_COMMON_STOP_WATCHER_H_

#include <functional>
#include <thread>

#include "absl/strings/string_view.h"

namespace rubato {

// Calls back, on a thread of its own, when the process is asked to stop (SIGINT, SIGTERM). Make it in main before any
// other thread, so that all of them leave these signals to it.
//
//   StopWatcher watcher([&](absl::string_view signal) { task.Cancel(...); });
class StopWatcher {
 public:
  explicit StopWatcher(std::function<void(absl::string_view signal)> on_stop);
  // No callback runs afterwards.
  ~StopWatcher();
  StopWatcher(const StopWatcher&) = delete;
  StopWatcher& operator=(const StopWatcher&) = delete;

 private:
  std::thread thread_;
};

}  // namespace rubato

#endif  // RUBATO_COMMON_STOP_WATCHER_H_
