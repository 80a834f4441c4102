#ifndef RUBATO_CLIENT_SIDECAR_CLIENT_QUEUE_H_
#define RUBATO_CLIENT_SIDECAR_CLIENT_QUEUE_H_

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "client/link/frame.h"
#include "common/mutex.h"

namespace rubato::client {

// What the client has said of its steps, in its order, for the thread that steps with the servers, and how it wants to
// leave the job. Thread-safe.
class ClientQueue {
 public:
  void Push(Frame frame) {
    MutexLock lock(mu_);
    frames_.push_back(std::move(frame));
    changed_.NotifyAll();
  }
  // Nothing if none comes in time, or somebody calls Wake.
  std::optional<Frame> Next(absl::Duration timeout) {
    MutexLock lock(mu_);
    if (frames_.empty()) changed_.WaitFor(mu_, timeout);
    if (frames_.empty()) return std::nullopt;
    Frame frame = std::move(frames_.front());
    frames_.pop_front();
    return frame;
  }
  void Wake() { changed_.NotifyAll(); }
  // Whether one of this kind is to come with Next.
  bool Has(FrameKind kind) {
    MutexLock lock(mu_);
    return std::any_of(frames_.begin(), frames_.end(), [kind](const Frame& frame) { return frame.kind == kind; });
  }

  // After the step at work another worker is to take over this one's part.
  void Drain() {
    MutexLock lock(mu_);
    drain_ = true;
    changed_.NotifyAll();
  }
  // The client has done its part.
  void Close() {
    MutexLock lock(mu_);
    close_ = true;
    changed_.NotifyAll();
  }
  bool drains() {
    MutexLock lock(mu_);
    return drain_;
  }
  bool closes() {
    MutexLock lock(mu_);
    return close_;
  }
  bool leaves() {
    MutexLock lock(mu_);
    return drain_ || close_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::deque<Frame> frames_ ABSL_GUARDED_BY(mu_);
  bool drain_ ABSL_GUARDED_BY(mu_) = false;
  bool close_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace rubato::client

#endif  // RUBATO_CLIENT_SIDECAR_CLIENT_QUEUE_H_
