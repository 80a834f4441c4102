#ifndef RUBATO_COMMON_TRANSPORT_PROCESS_TUNING_H_
#define RUBATO_COMMON_TRANSPORT_PROCESS_TUNING_H_

namespace rubato {

// Settings of the whole process that gRPC is faster with. To be called once, first thing in main.
//
// Freed memory is kept instead of given back to the system at once: gRPC allocates and frees buffers for every message,
// and returning and faulting in their pages again is what costs most for messages of 1 MiB and more (glibc alone).
// Abseil's mutexes do not look for deadlocks.
void TuneProcess();

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_PROCESS_TUNING_H_
