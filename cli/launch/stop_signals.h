#ifndef RUBATO_CLI_LAUNCH_STOP_SIGNALS_H_
#define RUBATO_CLI_LAUNCH_STOP_SIGNALS_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace rubato {

// Takes SIGINT, SIGTERM and SIGHUP as readable events instead of interruptions, and if wanted the end of an input.
// Create it in the main thread before any other thread is started, so that all of them inherit the block. Not
// thread-safe.
class StopSignals {
 public:
  static absl::StatusOr<std::unique_ptr<StopSignals>> Create();
  // Restores what the process did with these signals before.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The end of a pipe or socket counts as a signal too; what comes before it is read and forgotten. `input` stays open
  // as long as this object. Internal: the system's reason.
  absl::Status AlsoAtEndOf(int input);

  // Whether one has arrived since the last call.
  bool Take();
  // Who stopped it, if Take has returned true: "stopped by a signal".
  const std::string& reason() const { return reason_; }
  // Becomes readable (poll(2)) when one may have arrived.
  int descriptor() const { return events_.get(); }

 private:
  StopSignals(FileDescriptor signals, FileDescriptor events)
      : signals_(std::move(signals)), events_(std::move(events)) {}

  bool InputHasEnded();

  const FileDescriptor signals_;
  // An epoll(7) of what can end it.
  const FileDescriptor events_;
  int input_ = -1;
  std::string reason_ = "stopped by a signal";
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_STOP_SIGNALS_H_
