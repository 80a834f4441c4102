#include "common/transport/process_tuning.h"

#include <malloc.h>
#include <sched.h>

#include "absl/synchronization/mutex.h"

namespace rubato {

void TuneProcess() {
#ifdef __GLIBC__
  // Free memory at the top of the heap that is kept.
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  // Setting the first stops glibc from adapting this one, the size from which an allocation is a mapping of its own,
  // unmapped when it is freed. This is the largest value that it takes.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
  // Debian's Abseil is built with its check on, which takes one lock of the whole process at each lock of gRPC's.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  ScheduleAsBatch();
}

void ScheduleAsBatch() {
  const sched_param no_priority = {};
  sched_setscheduler(0, SCHED_BATCH, &no_priority);
}

}  // namespace rubato
