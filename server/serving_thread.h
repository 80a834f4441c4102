#ifndef RUBATO_SERVER_SERVING_THREAD_H_
#define RUBATO_SERVER_SERVING_THREAD_H_

#include <atomic>
#include <cstddef>

namespace rubato::server {

// Which requests are served by the thread that brings them, if nobody else is at work in their partition, and which are
// left to the partition's thread (docs/decisions/0005): waking another thread takes as long as serving a few KiB, but
// while it serves, the next message can be read. Thread-safe.
class ServingThread {
 public:
  // Up to this much payload, taking a request to another thread costs more than serving it.
  static constexpr size_t kSmallBytes = size_t{64} << 10;

  struct Work {
    // Of the request's gradients.
    size_t gradient_bytes = 0;
    // They are not in the message, which is quickly read.
    bool in_shared_memory = false;
    // Rows, of which there may be few; tensors' gradients in shared memory count as large.
    bool is_of_table = false;
  };

  // How many cores the process may use, and how many partitions it has.
  ServingThread(int cores, int partitions) : serves_large_(cores <= 2 && partitions <= 1) {}

  // In the plan.
  void set_workers(int workers) { several_workers_ = workers > 1; }

  bool IsCallers(const Work& work) const {
    const bool may_be_small = !work.in_shared_memory || work.is_of_table;
    if (may_be_small && work.gradient_bytes <= kSmallBytes) return true;
    // Workers come to the end of a step at about the same time: while the gradient of one is applied, another's is
    // there to be read, and there is a core that has nothing else to do.
    return serves_large_ && (work.in_shared_memory || !several_workers_);
  }

 private:
  // There is no core to spare, nor are there partitions that are to be at work at the same time.
  const bool serves_large_;
  std::atomic<bool> several_workers_ = false;
};

}  // namespace rubato::server

#endif  // RUBATO_SERVER_SERVING_THREAD_H_
