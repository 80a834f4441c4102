#ifndef RUBATO_WORKER_DEVICE_STEP_WATCHDOG_H_
#define RUBATO_WORKER_DEVICE_STEP_WATCHDOG_H_

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "worker/device/step_deadline.h"

namespace rubato::worker {

// Notices, on a thread of its own, that the task's thread hangs in a call to the device, or waits for data that a file
// system does not give: a GPU that is lost may never answer, and neither a driver's call nor a read can be cancelled.
// Thread-safe.
//
//   StepWatchdog watchdog({.limit = absl::Minutes(5), .clock = &clock, .on_expired = GiveUp});
//   watchdog.Begin("step 7");
//   { StepWatchdog::Watch watch(&watchdog, "loss"); ... }
class StepWatchdog {
 public:
  struct Options {
    // For the calls of one piece of work together.
    absl::Duration limit;
    const Clock* clock = nullptr;
    // How often it looks.
    absl::Duration poll = absl::Milliseconds(250);
    // Called at most once, on the watchdog's thread, with what the work waits for.
    std::function<void(const std::string&)> on_expired;
  };

  using On = StepDeadline::On;

  // A call that may wait for the device, or the reader, lasts as long as this. `watchdog` may be null; the texts
  // outlive it.
  class Watch {
   public:
    Watch(StepWatchdog* watchdog, absl::string_view what, absl::string_view subject = "", On on = On::kDevice);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    StepWatchdog* const watchdog_;
  };

  explicit StepWatchdog(Options options);
  // Waits for on_expired if it is running.
  ~StepWatchdog();
  StepWatchdog(const StepWatchdog&) = delete;
  StepWatchdog& operator=(const StepWatchdog&) = delete;

  // Another piece of work, such as "step 7", has the whole time again; the first is "the start".
  void Begin(std::string work);

 private:
  void Run();
  // Nothing: the watchdog ends.
  std::optional<std::string> AwaitExpiry();

  const Options options_;
  Mutex mu_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  StepDeadline deadline_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DEVICE_STEP_WATCHDOG_H_
