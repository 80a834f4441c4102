#ifndef RUBATO_SERVER_WORK_QUEUE_H_
#define RUBATO_SERVER_WORK_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace rubato::server {

// Work that is done one piece at a time, in order: by a thread of its own, or, while that has nothing to do, by whoever
// brings it. Thread-safe.
//
//   WorkQueue queue(clock, [&](absl::Time now) { partition.OnTick(now); });
//   if (!queue.TryRun([&] { Serve(request); })) queue.Post([&] { Serve(request); });
class WorkQueue {
 public:
  // `on_tick` is called between pieces of work, on the thread, every kTick as long as the work allows.
  static constexpr absl::Duration kTick = absl::Milliseconds(50);
  WorkQueue(const Clock* clock, std::function<void(absl::Time now)> on_tick);
  // As Stop().
  ~WorkQueue();

  // For the thread. `kind`: what MoreOf is asked for.
  void Post(std::function<void()> work, std::optional<uint32_t> kind = std::nullopt);

  // Does it before it returns, if nobody is at work and nothing waits. Otherwise returns false and does nothing.
  template <typename Work>
  bool TryRun(Work&& work) {
    if (!TryBegin()) return false;
    work();
    End();
    return true;
  }

  // Returns when the work that is being done is done; what waits is dropped.
  void Stop();

  // How many wait.
  size_t length();

  // Asked by work while it is done: how many pieces of this kind the thread does after it before it looks at what has
  // been posted since. 0 if another thread does it.
  size_t MoreOf(uint32_t kind) const;

 private:
  struct Piece {
    std::function<void()> work;
    std::optional<uint32_t> kind;
  };

  void Run();
  bool TryBegin();
  void End();

  const Clock* const clock_;
  const std::function<void(absl::Time)> on_tick_;
  Mutex mu_;
  CondVar wake_;
  std::deque<Piece> work_ ABSL_GUARDED_BY(mu_);
  // Somebody is at work, outside the lock: the thread, or whoever brought it.
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  // The thread waits for the other to be done.
  bool wanted_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // Of what the thread has taken from work_, pieces that it has not begun. Used by whoever is at work.
  absl::flat_hash_map<uint32_t, size_t> more_;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_WORK_QUEUE_H_
