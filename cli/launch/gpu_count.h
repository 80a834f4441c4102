#ifndef RUBATO_CLI_LAUNCH_GPU_COUNT_H_
#define RUBATO_CLI_LAUNCH_GPU_COUNT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/launch/stop_signals.h"
#include "common/clock.h"

namespace rubato {

// How many GPUs a worker that is started here can take, from GPU 0 on; 0 if it was built without CUDA or there is
// no driver. `worker --count_gpus` says so, as a process of its own: a driver may hang. Its output goes to `log_path`,
// which is gone when it has answered. In the main thread alone (child_process.h).
//
// Cancelled: a signal came. DeadlineExceeded: no answer within `timeout`. Aborted: the program cannot tell; has its
// last words. Internal: it could not be started.
absl::StatusOr<uint32_t> CountGpus(const std::string& worker, const std::string& log_path, absl::Duration timeout,
                                   const Clock& clock, StopSignals* signals);

}  // namespace rubato

#endif  // RUBATO_CLI_LAUNCH_GPU_COUNT_H_
