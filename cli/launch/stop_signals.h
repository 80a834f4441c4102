#ifndef RUBATO_CLI_LAUNCH_STOP_SIGNALS_H_
#define RUBATO_CLI_LAUNCH_STOP_SIGNALS_H_

#include <memory>

#include "absl/status/statusor.h"

namespace rubato {

// Takes SIGINT, SIGTERM and SIGHUP as readable events instead of interruptions. Create it in the main thread before any
// other thread is started, so that all of them inherit the block. Not thread-safe.
class StopSignals {
 public:
  static absl::StatusOr<std::unique_ptr<StopSignals>> Create();
  // Restores what the process did with these signals before.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Whether one has arrived since the last call.
  bool Take();
  // Becomes readable (poll(2)) when one has arrived.
  int descriptor() const { return descriptor_; }

 private:
  explicit StopSignals(int descriptor) : descriptor_(descriptor) {}

  const int descriptor_;
};

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_STOP_SIGNALS_H_
