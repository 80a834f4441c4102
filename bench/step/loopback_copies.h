#ifndef RUBATO_BENCH_STEP_LOOPBACK_COPIES_H_
#define RUBATO_BENCH_STEP_LOOPBACK_COPIES_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rubato::bench {

// A TCP connection of this process to itself. What is sent through it costs what the system at least takes for it, the
// copies into and out of its memory: nobody waits, no thread wakes another, and everything is still in the cache. Used
// by one thread.
class LoopbackCopies {
 public:
  // Internal if the system refuses.
  static absl::StatusOr<std::unique_ptr<LoopbackCopies>> Create();
  ~LoopbackCopies();

  // Sends these bytes, and receives them into memory of its own at `place`, which grows as needed. Internal if the
  // system refuses; DeadlineExceeded if nothing comes for 10 seconds.
  absl::Status Move(const void* data, size_t bytes, std::vector<char>* place);

 private:
  LoopbackCopies(int sends, int receives) : sends_(sends), receives_(receives) {}

  const int sends_;
  const int receives_;
};

}  // namespace rubato::bench

#endif  // RUBATO_BENCH_STEP_LOOPBACK_COPIES_H_
