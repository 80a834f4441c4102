#ifndef RUBATO_WORKER_DEVICE_STEP_DEADLINE_H_
#define RUBATO_WORKER_DEVICE_STEP_DEADLINE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace rubato::worker {

// Adds up how long a piece of work, such as a step, has been in calls that may wait for its device or for the reader of
// its data, and says when that is too long. What lies between these calls, such as waiting for servers, does not count.
// A pure state machine.
class StepDeadline {
 public:
  // What a call may wait for.
  enum class On { kDevice, kReader };

  explicit StepDeadline(absl::Duration limit) : limit_(limit) {}

  // The time of the next piece of work, "step 7", starts at zero. The first one is "the start".
  void Begin(std::string work);
  // A call begins, possibly inside of another, and ends; it is "<what> <subject>". The texts outlive it.
  void Enter(On on, absl::string_view what, absl::string_view subject, absl::Time now);
  void Leave(absl::Time now);

  // What the work is at, when its time is up. Nothing between calls: what has returned does not hang.
  std::optional<std::string> Expired(absl::Time now) const;

 private:
  struct Call {
    On on;
    absl::string_view what;
    absl::string_view subject;
  };

  const absl::Duration limit_;
  std::string work_ = "the start";
  // In calls of this work that have ended.
  absl::Duration used_;
  bool has_read_ = false;
  // The calls it is in, the innermost last, and when the outermost began.
  std::vector<Call> calls_;
  absl::Time entered_;
};

}  // namespace rubato::worker

#endif  // RUBATO_WORKER_DEVICE_STEP_DEADLINE_H_
