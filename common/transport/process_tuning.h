#ifndef RUBATO_COMMON_TRANSPORT_PROCESS_TUNING_H_
#define RUBATO_COMMON_TRANSPORT_PROCESS_TUNING_H_

namespace rubato {

// Settings of the whole process that gRPC is faster with. To be called once, first thing in main.
//
// Freed memory is kept instead of given back to the system at once: gRPC allocates and frees buffers for every message,
// and returning and faulting in their pages again is what costs most for messages of 1 MiB and more (glibc alone).
// Abseil's mutexes do not look for deadlocks.
void TuneProcess();

// Tells the system that the calling thread, and the threads and processes that it starts from now on, have work to do
// rather than somebody to answer: when they wake up they do not take a processor from what runs there (SCHED_BATCH,
// sched(7)). Where processors are fewer than what wants to run, each then does more at a time. Nothing happens where
// the system refuses.
void ScheduleAsBatch();

// The opposite, for a coordinator and for commands that somebody waits for: when they wake up they take the processor
// from what runs there, and where many wait for it their turn comes soon, and is short (a slice of 0.1 ms;
// sched_setattr(2), from Linux 6.12 on; before it they wait for their turn as others do).
void ScheduleToAnswer();

}  // namespace rubato

#endif  // RUBATO_COMMON_TRANSPORT_PROCESS_TUNING_H_
